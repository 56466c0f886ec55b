//go:build !noasm

package crc

// Carry-less multiplication, bit-reflected.
//
// Bytes are polynomials over GF(2) whose highest power comes first, and CRC-32
// takes the lowest bit of a byte first. So in a 128-bit register that holds 16
// bytes of a message, bit i is the coefficient of x^(127-i), and in one of its
// 64-bit halves bit i is that of x^(63-i). The low half is the first in the
// message, so its powers are x^64 times those of the high half. The product of
// two halves has 127 bits: read in the 128-bit order above it is a·b·x, one x
// too many.
//
// K(n) stands for x^n mod P as the CRC register holds it, bit 31 being x^0, in
// the low 32 bits of a half. Read as a half it is x^32 times that. So for every
// constant here
//
//	clmul(a, K(n)) = a·x^(n+33)  modulo P, of a degree below 128.
//
// A constant that moves a half by d bits is therefore K(d-33).

// foldTable is what the kernels of amd64 read; TestFoldTable derives it.
type foldTable struct {
	// weights[i] moves half i of 256 bytes to the end of the message and 64
	// bits on: K(64·(31-i)+31). The last 64 bytes of a message, or 128 or 192,
	// take the last weights. weights[23] and weights[24] also fold a lane by 512
	// bits, which is where the same half is four lanes on.
	weights [32]uint64

	// loop folds a lane by 2048 bits: K(2048+64-33) for its first half and
	// K(2048-33) for its second.
	loop [2]uint64

	// barrett is floor(x^95/P), then P, both reflected. P has 33 bits, so that
	// its x^32 is bit 0; read as a half it is x^31·P.
	barrett [2]uint64
}

// crcFold is the table for P = x^32 + x^26 + x^23 + x^22 + x^16 + x^12 + x^11 + x^10 + x^8 + x^7 + x^5 +
// x^4 + x^2 + x + 1, the polynomial of CRC-32 (IEEE 802.3) and of the ICRC.
var crcFold = foldTable{
	weights: [32]uint64{
		0xe95c1271, 0x0077f00d, 0x1f0c2cdd, 0x4a28bd43, 0xfe807bbd, 0x682bdd4f, 0x3c656ced, 0x596c8d81, // K(2015) to K(1567)
		0xf5e48c85, 0x5a1bb05d, 0xd1df2327, 0xe3543be0, 0x9026d5b1, 0x26b70c3d, 0x3f41287a, 0x33fff533, // K(1503) to K(1055)
		0x910eeec1, 0x31f8303f, 0x0cbec0ed, 0xdf068dc2, 0x57c54819, 0x1c279815, 0xae0b5394, 0x8f352d95, // K(991) to K(543)
		0x1d9513d7, 0x3db1ecdc, 0xaf449247, 0xf1da05aa, 0x81256527, 0xae689191, 0xccaa009e, 0x00000001, // K(479) to K(31)
	},
	loop:    [2]uint64{0xce3371cb, 0xe95c1271}, // K(2079), K(2015)
	barrett: [2]uint64{0xb4e5b025f7011641, 0x1db710641},
}

// shiftUp64, read from byte h on, is an index for VPERMB that moves the first h
// bytes of 64 to the end. Of an index only the low six bits count.
var shiftUp64 = [128]byte{
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
	16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
	32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
	48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
	16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
	32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
	48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
}

// shiftUp16, read from byte h on, is an index for PSHUFB that moves the first h
// bytes of 16 to the end and zeros the rest.
var shiftUp16 = [32]byte{
	128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
}
