//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// crcAVX512 and copyCRCAVX512 are the same program, crc_avx512_amd64.h, with
// other macros for the message: READ takes the block of 64 bytes at SI+off,
// ADVANCE goes past n bytes. Copying, READ also writes the block to DI+off.

// func crcAVX512(crc uint32, p []byte) uint32
TEXT ·crcAVX512(SB), NOSPLIT, $0-36
	MOVL crc+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX

#define READ(off, z) \
	VMOVDQU64 off(SI), z

#define ADVANCE(n) \
	ADDQ n, SI

#include "avx512_amd64.h"

	MOVL AX, ret+32(FP)
	RET

#undef READ
#undef ADVANCE

// AHEAD is how far in front of what is copied the source is asked for. The processor
// itself looks ahead in the block at hand, but packets are copied one by one: the sum of
// one is reduced and the next header summed, and memory would rest meanwhile. Behind the
// end of the source it asks in vain, but does no harm.
#define AHEAD 2048

// func copyCRCAVX512(dst *byte, src []byte, crc uint32) uint32
TEXT ·copyCRCAVX512(SB), NOSPLIT, $0-44
	MOVQ dst+0(FP), DI
	MOVQ src_base+8(FP), SI
	MOVQ src_len+16(FP), CX
	MOVL crc+32(FP), AX

#define READ(off, z) \
	PREFETCHT0 (AHEAD+off)(SI) \
	VMOVDQU64  off(SI), z      \
	VMOVDQU64  z, off(DI)

#define ADVANCE(n) \
	ADDQ n, SI \
	ADDQ n, DI

#include "avx512_amd64.h"

	MOVL AX, ret+40(FP)
	RET
