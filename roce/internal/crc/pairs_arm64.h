// R0 over the R1 bytes at R2, into R0; R1 is a multiple of 1024 and not zero.
// Included by crc_arm64.s. A round takes 1024 bytes, the halves of which are
// two streams:
//
//	R0, R2, R3  register, source, destination of the first half
//	R10, R6, R7 of the second half
//	R11         rounds of the inner loop    V1   x^(4096-33) mod P
//
// See pairShift for the constant.

	MOVD $const_pairShift, R12
	VMOV R12, V1.D[0]

block:
	ADD  $(const_pairLen/2), R2, R6
	ADD  $(const_pairLen/2), R3, R7 // copying only
	MOVD $0, R10
	MOVD $(const_pairLen/32), R11

pair:
	READ16
	READ16SECOND
	CRC32X R4, R0
	CRC32X R8, R10
	CRC32X R5, R0
	CRC32X R9, R10
	SUBS   $1, R11
	BNE    pair

	// The first half's register moved past the second half, plus the second's.
	VMOV   R0, V0.D[0]
	VPMULL V0.D1, V1.D1, V0.Q1
	VMOV   V0.D[0], R12
	MOVD   $0, R0
	CRC32X R12, R0
	EOR    R10, R0
	MOVD   R6, R2
	MOVD   R7, R3
	SUBS   $const_pairLen, R1
	BNE    block
