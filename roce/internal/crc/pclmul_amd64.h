// The CRC register AX over the CX >= 16 bytes at SI, into AX; CX % 16 is zero
// or at least 4. Included by crc_pclmul_amd64.s, which defines READ and
// ADVANCE. It is crc_avx512_amd64.h, explained there, with blocks of 16 bytes
// and four accumulators of one lane:
//
//	AX      the register            CX   bytes in the first block, 0 for 16
//	SI, DI  source, destination     BX   the constants
//	R8      blocks after the first  R9   rounds of the main loop
//	X0-X3   the message, 64 bytes   X6   the constants of the main loop
//	X8-X15  temporaries

// FOLD moves the accumulator x by 512 bits and adds the block read at off.
#define FOLD(off, x, t, block) \
	READ(off, block)         \
	MOVO      x, t           \
	PCLMULQDQ $0x00, X6, t   \
	PCLMULQDQ $0x11, X6, x   \
	PXOR      block, t       \
	PXOR      t, x

// WEIGH multiplies each half of x with its weight and adds them.
#define WEIGH(i, x, t, w) \
	MOVOU     (foldTable_weights+8*i)(BX), w \
	MOVO      x, t           \
	PCLMULQDQ $0x00, w, t    \
	PCLMULQDQ $0x11, w, x    \
	PXOR      t, x

	LEAQ ·crcFold(SB), BX
	MOVQ AX, X4
	LEAQ -1(CX), R8
	SHRQ $4, R8
	READ(0, X0)                // whole: what is past the first block is read, and written, again
	PXOR X4, X0
	ANDQ $15, CX
	JNZ  partial
	ADVANCE($16)
	JMP  first

partial:
	// CX bytes, moved to the end of the block.
	LEAQ   ·shiftUp16(SB), R12
	MOVOU  (R12)(CX*1), X5
	PSHUFB X5, X0
	ADVANCE(CX)

first:
	CMPQ R8, $3
	JA   long
	JE   four
	CMPQ R8, $1
	JA   three
	JE   two

	// One block.
	WEIGH(30, X0, X8, X12)
	JMP reduce

two:
	READ(0, X1)
	WEIGH(28, X0, X8, X12)
	WEIGH(30, X1, X9, X13)
	PXOR X1, X0
	JMP  reduce

three:
	READ(0, X1)
	READ(16, X2)
	WEIGH(26, X0, X8, X12)
	WEIGH(28, X1, X9, X13)
	WEIGH(30, X2, X10, X14)
	PXOR X1, X0
	PXOR X2, X0
	JMP  reduce

long:
	MOVOU (foldTable_weights+8*23)(BX), X6
	MOVQ  R8, R9
	SHRQ  $2, R9
	PXOR  X1, X1
	PXOR  X2, X2
	ANDQ  $3, R8
	CMPQ  R8, $2
	JA    long4
	JE    long3
	CMPQ  R8, $1
	JE    long2
	MOVO  X0, X3
	PXOR  X0, X0
	JMP   loop

long2:
	MOVO X0, X2
	PXOR X0, X0
	READ(0, X3)
	ADVANCE($16)
	JMP  loop

long3:
	MOVO X0, X1
	PXOR X0, X0
	READ(0, X2)
	READ(16, X3)
	ADVANCE($32)
	JMP  loop

long4:
	READ(0, X1)
	READ(16, X2)
	READ(32, X3)
	ADVANCE($48)

loop:
	FOLD(0, X0, X8, X12)
	FOLD(16, X1, X9, X13)
	FOLD(32, X2, X10, X14)
	FOLD(48, X3, X11, X7)
	ADVANCE($64)
	DECQ R9
	JNZ  loop
	JMP  sum

four:
	READ(0, X1)
	READ(16, X2)
	READ(32, X3)

sum:
	WEIGH(24, X0, X8, X12)
	WEIGH(26, X1, X9, X13)
	WEIGH(28, X2, X10, X14)
	WEIGH(30, X3, X11, X7)
	PXOR X1, X0
	PXOR X3, X2
	PXOR X2, X0

reduce:
	MOVOU     foldTable_barrett(BX), X2
	MOVO      X0, X1
	PCLMULQDQ $0x00, X2, X1    // the low half is q
	PCLMULQDQ $0x10, X2, X1    // bits 64 to 95 are those of q·P
	PXOR      X1, X0
	PEXTRD    $2, X0, AX

#undef FOLD
#undef WEIGH
