// The CRC register AX over the CX > 64 bytes at SI, into AX; CX % 64 is zero or
// at least 4. Included by crc_avx512_amd64.s, which defines READ and ADVANCE.
// The constants and the order of bits are explained in
// crc_fold_amd64.go; K(n) there moves a half of a lane by n+33 bits.
//
// Zeros in front of a message do not change its CRC when the register is zero,
// and the register is XORed into the first four bytes. So the message is made
// a multiple of 64 bytes by zeros in front: only the first block may be
// partial, there is no tail. Likewise a long message is made a multiple of 256
// bytes by zero accumulators in front.
//
//	AX      the register            CX   bytes in the first block, 0 for 64
//	SI, DI  source, destination     BX   the constants
//	R8      blocks after the first  R9   rounds of the main loop
//	Z0-Z3   the message, 256 bytes  Z6   the constants of the main loop
//	Z8-Z15  temporaries             Z16-Z19 weights

// FOLD moves the accumulator z by 2048 bits and adds the block read at off. Of
// each lane the first half is 64 bits further from the end than the second,
// so each has its constant. The truth table 0x96 is the XOR of three.
#define FOLD(off, z, t, block) \
	READ(off, block)                 \
	VPCLMULQDQ $0x00, Z6, z, t       \
	VPCLMULQDQ $0x11, Z6, z, z       \
	VPTERNLOGQ $0x96, block, t, z

// WEIGH multiplies each half of block z with its weight, at off in the table.
// The sum of z and t is then the block's share, lane by lane.
#define WEIGH(off, z, t, w) \
	VMOVDQU64  (foldTable_weights+off)(BX), w \
	VPCLMULQDQ $0x00, w, z, t                 \
	VPCLMULQDQ $0x11, w, z, z

	LEAQ  ·crcFold(SB), BX
	VMOVD AX, X4               // the rest of Z4 is zero
	LEAQ  -1(CX), R8
	SHRQ  $6, R8
	READ(0, Z0)                // what is past the first block is read, and written, again
	VPXORQ Z4, Z0, Z0
	ANDQ   $63, CX
	JNZ    partial
	ADVANCE($64)
	JMP    first

partial:
	// CX bytes, moved to the end of the block. The shift counts modulo 64, so
	// that -CX is 64-CX.
	MOVQ      CX, R10
	NEGQ      R10
	MOVQ      $-1, R11
	SHLXQ     R10, R11, R11
	KMOVQ     R11, K1          // the last CX bytes
	LEAQ      ·shiftUp64(SB), R12
	VMOVDQU64 (R12)(CX*1), Z5
	VPERMB.Z  Z0, Z5, K1, Z0
	ADVANCE(CX)

first:
	CMPQ R8, $3
	JA   long
	JE   four
	CMPQ R8, $1
	JA   three

	// Two blocks.
	READ(0, Z1)
	WEIGH(128, Z0, Z8, Z18)
	WEIGH(192, Z1, Z9, Z19)
	VPTERNLOGQ $0x96, Z8, Z9, Z0
	VPXORQ     Z1, Z0, Z0
	JMP        reduce

three:
	READ(0, Z1)
	READ(64, Z2)
	WEIGH(64, Z0, Z8, Z17)
	WEIGH(128, Z1, Z9, Z18)
	WEIGH(192, Z2, Z10, Z19)
	VPTERNLOGQ $0x96, Z8, Z9, Z0
	VPTERNLOGQ $0x96, Z1, Z10, Z2
	VPXORQ     Z2, Z0, Z0
	JMP        reduce

long:
	// R8+1 blocks: 1 to 4 of them fill the accumulators, the last one last.
	VBROADCASTI32X4 foldTable_loop(BX), Z6
	MOVQ   R8, R9
	SHRQ   $2, R9
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2
	ANDQ   $3, R8
	CMPQ   R8, $2
	JA     long4
	JE     long3
	CMPQ   R8, $1
	JE     long2
	VMOVDQA64 Z0, Z3
	VPXORQ    Z0, Z0, Z0
	JMP       loop

long2:
	VMOVDQA64 Z0, Z2
	VPXORQ    Z0, Z0, Z0
	READ(0, Z3)
	ADVANCE($64)
	JMP       loop

long3:
	VMOVDQA64 Z0, Z1
	VPXORQ    Z0, Z0, Z0
	READ(0, Z2)
	READ(64, Z3)
	ADVANCE($128)
	JMP       loop

long4:
	READ(0, Z1)
	READ(64, Z2)
	READ(128, Z3)
	ADVANCE($192)

loop:
	FOLD(0, Z0, Z8, Z12)
	FOLD(64, Z1, Z9, Z13)
	FOLD(128, Z2, Z10, Z14)
	FOLD(192, Z3, Z11, Z15)
	ADVANCE($256)
	DECQ R9
	JNZ  loop
	JMP  sum

four:
	READ(0, Z1)
	READ(64, Z2)
	READ(128, Z3)

sum:
	WEIGH(0, Z0, Z8, Z16)
	WEIGH(64, Z1, Z9, Z17)
	WEIGH(128, Z2, Z10, Z18)
	WEIGH(192, Z3, Z11, Z19)
	VPTERNLOGQ $0x96, Z8, Z9, Z0
	VPTERNLOGQ $0x96, Z1, Z10, Z2
	VPTERNLOGQ $0x96, Z3, Z11, Z0
	VPXORQ     Z2, Z0, Z0

reduce:
	// The sum of the four lanes, B, is the message times x^32 modulo P, of a
	// degree below 96, and stands 32 bits before the end of its lane: the low
	// half is floor(B/x^32), bits 64 to 95 are B mod x^32.
	VEXTRACTI64X4 $1, Z0, Y1
	VPXOR         Y1, Y0, Y0
	VEXTRACTI128  $1, Y0, X1
	VPXOR         X1, X0, X0

	// Barrett's reduction, exact here: q = floor(floor(B/x^32)·floor(x^95/P) /
	// x^63) is floor(B/P). A product has one x too many, so that q is the low
	// half. q·P has x^31 from P and this x, so its x^0 to x^31 are bits 64 to 95
	// too, as those of B; their XOR is B mod P, the new register.
	VMOVDQU    foldTable_barrett(BX), X2
	VPCLMULQDQ $0x00, X2, X0, X1
	VPCLMULQDQ $0x10, X2, X1, X1
	VPXOR      X1, X0, X0
	VPEXTRD    $2, X0, AX
	VZEROUPPER                 // or SSE code that follows would be slow

#undef FOLD
#undef WEIGH
