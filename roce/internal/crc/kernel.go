package crc

import "hash/crc32"

// kernel is a way of computing CRC-32. Which ones there are depends on the
// processor and the build; kernelGo is there always.
type kernel uint8

// kernelGo leaves the work to hash/crc32.
const kernelGo kernel = 0

// Copy copies src to the start of dst and continues a CRC-32 over it, in one
// pass. crc and the result are the register as hash/crc32 keeps it, inverted:
// Copy(dst, src, crc) is crc32.Update(crc, crc32.IEEETable, src). dst must
// be at least as long as src, or Copy panics, and must not overlap it. Bytes
// of dst past len(src) stay as they are. It allocates nothing, and any number
// of goroutines may call it.
func Copy(dst, src []byte, crc uint32) uint32 {
	dst = dst[:len(src):len(dst)]
	if best == kernelGo {
		return copyCRCGo(dst, src, crc)
	}
	return best.copyCRC(dst, src, crc)
}

// cacheChunk is what copyCRCGo copies before it reads it again: small enough
// for every first-level cache.
const cacheChunk = 8 << 10

// copyCRCGo is Copy in portable Go. dst and src are of one length.
func copyCRCGo(dst, src []byte, crc uint32) uint32 {
	for len(src) > cacheChunk {
		copy(dst, src[:cacheChunk])
		crc = crc32.Update(crc, crc32.IEEETable, dst[:cacheChunk])
		dst, src = dst[cacheChunk:], src[cacheChunk:]
	}
	copy(dst, src)
	return crc32.Update(crc, crc32.IEEETable, dst)
}
