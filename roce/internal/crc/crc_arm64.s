//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// Each kernel comes twice, from crc_words_arm64.h and crc_pairs_arm64.h: once
// with macros that read the message, and once with macros that also write what
// they have read to the destination.
//
//	R0      the register            R1       bytes left
//	R2      source                  R3       destination
//	R4, R5  the message             R6-R12   second stream, see crc_pairs_arm64.h

// func crcWords(crc uint32, p []byte) uint32
TEXT ·crcWords(SB), NOSPLIT, $0-36
	MOVWU crc+0(FP), R0
	MOVD  p_base+8(FP), R2
	MOVD  p_len+16(FP), R1

#define READ16 \
	LDP.P 16(R2), (R4, R5)

#define READ8 \
	MOVD.P 8(R2), R4

#define READ4 \
	MOVWU.P 4(R2), R4

#define READ2 \
	MOVHU.P 2(R2), R4

#define READ1 \
	MOVBU.P 1(R2), R4

#include "words_arm64.h"

	MOVW R0, ret+32(FP)
	RET

// func crcPairs(crc uint32, p []byte) uint32
TEXT ·crcPairs(SB), NOSPLIT, $0-36
	MOVWU crc+0(FP), R0
	MOVD  p_base+8(FP), R2
	MOVD  p_len+16(FP), R1

#define READ16SECOND \
	LDP.P 16(R6), (R8, R9)

#include "pairs_arm64.h"

	MOVW R0, ret+32(FP)
	RET

#undef READ16
#undef READ16SECOND
#undef READ8
#undef READ4
#undef READ2
#undef READ1

// func copyCRCWords(dst *byte, src []byte, crc uint32) uint32
TEXT ·copyCRCWords(SB), NOSPLIT, $0-44
	MOVD  dst+0(FP), R3
	MOVD  src_base+8(FP), R2
	MOVD  src_len+16(FP), R1
	MOVWU crc+32(FP), R0

#define READ16 \
	LDP.P 16(R2), (R4, R5) \
	STP.P (R4, R5), 16(R3)

#define READ8 \
	MOVD.P 8(R2), R4 \
	MOVD.P R4, 8(R3)

#define READ4 \
	MOVWU.P 4(R2), R4 \
	MOVW.P  R4, 4(R3)

#define READ2 \
	MOVHU.P 2(R2), R4 \
	MOVH.P  R4, 2(R3)

#define READ1 \
	MOVBU.P 1(R2), R4 \
	MOVB.P  R4, 1(R3)

#include "words_arm64.h"

	MOVW R0, ret+40(FP)
	RET

// func copyCRCPairs(dst *byte, src []byte, crc uint32) uint32
TEXT ·copyCRCPairs(SB), NOSPLIT, $0-44
	MOVD  dst+0(FP), R3
	MOVD  src_base+8(FP), R2
	MOVD  src_len+16(FP), R1
	MOVWU crc+32(FP), R0

#define READ16SECOND \
	LDP.P 16(R6), (R8, R9) \
	STP.P (R8, R9), 16(R7)

#include "pairs_arm64.h"

	MOVW R0, ret+40(FP)
	RET
