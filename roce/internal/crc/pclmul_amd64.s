//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// crcPCLMUL and copyCRCPCLMUL are the same program, crc_pclmul_amd64.h, with
// other macros for the message: READ takes the block of 16 bytes at SI+off,
// ADVANCE goes past n bytes. Copying, READ also writes the block to DI+off.

// func crcPCLMUL(crc uint32, p []byte) uint32
TEXT ·crcPCLMUL(SB), NOSPLIT, $0-36
	MOVL crc+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX

#define READ(off, x) \
	MOVOU off(SI), x

#define ADVANCE(n) \
	ADDQ n, SI

#include "pclmul_amd64.h"

	MOVL AX, ret+32(FP)
	RET

#undef READ
#undef ADVANCE

// func copyCRCPCLMUL(dst *byte, src []byte, crc uint32) uint32
TEXT ·copyCRCPCLMUL(SB), NOSPLIT, $0-44
	MOVQ dst+0(FP), DI
	MOVQ src_base+8(FP), SI
	MOVQ src_len+16(FP), CX
	MOVL crc+32(FP), AX

#define READ(off, x) \
	MOVOU off(SI), x \
	MOVOU x, off(DI)

#define ADVANCE(n) \
	ADDQ n, SI \
	ADDQ n, DI

#include "pclmul_amd64.h"

	MOVL AX, ret+40(FP)
	RET
