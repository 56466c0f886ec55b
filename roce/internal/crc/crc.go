package crc

import "hash/crc32"

// Update continues a CRC-32 (in the inverted form of hash/crc32) over b.
func Update(crc uint32, b []byte) uint32 {
	if best == kernelGo {
		return crc32.Update(crc, crc32.IEEETable, b)
	}
	return best.update(crc, b)
}

// UpdateShort is Update for bytes on the caller's stack, which the function
// pointer inside hash/crc32 would move to the heap.
func UpdateShort(crc uint32, b []byte) uint32 {
	if best == kernelGo {
		return slicingUpdate(crc, b)
	}
	return best.update(crc, b)
}

// Word is Update for four bytes, w's from the lowest on. It needs no memory to read
// them from.
func Word(crc, w uint32) uint32 {
	w ^= ^crc
	return ^(slicing[0][w>>24] ^ slicing[1][w>>16&0xFF] ^ slicing[2][w>>8&0xFF] ^ slicing[3][w&0xFF])
}

// slicingUpdate is Update by table, eight bytes at a time.
func slicingUpdate(crc uint32, b []byte) uint32 {
	crc = ^crc
	for len(b) >= 8 {
		crc ^= uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		crc = slicing[0][b[7]] ^ slicing[1][b[6]] ^ slicing[2][b[5]] ^ slicing[3][b[4]] ^
			slicing[4][crc>>24] ^ slicing[5][crc>>16&0xFF] ^ slicing[6][crc>>8&0xFF] ^ slicing[7][crc&0xFF]
		b = b[8:]
	}
	if len(b) >= 4 {
		crc ^= uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		crc = slicing[0][crc>>24] ^ slicing[1][crc>>16&0xFF] ^ slicing[2][crc>>8&0xFF] ^ slicing[3][crc&0xFF]
		b = b[4:]
	}
	for _, v := range b {
		crc = slicing[0][uint8(crc)^v] ^ crc>>8
	}
	return ^crc
}

// slicing[k][v] is the register after byte v and k zero bytes.
var slicing = makeSlicing()

func makeSlicing() *[8][256]uint32 {
	t := new([8][256]uint32)
	t[0] = *crc32.IEEETable
	for v := range 256 {
		crc := t[0][v]
		for k := 1; k < 8; k++ {
			crc = t[0][uint8(crc)] ^ crc>>8
			t[k][v] = crc
		}
	}
	return t
}
