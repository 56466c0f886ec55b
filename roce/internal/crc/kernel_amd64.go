//go:build !noasm

package crc

import "golang.org/x/sys/cpu"

// The kernels of amd64.
const (
	kernelPCLMUL kernel = 1 + iota // SSE, one lane of 16 bytes a register
	kernelAVX512                   // four lanes a register; kernelPCLMUL for what is short
)

const (
	// minPCLMUL is what its first read takes. Tables do what is shorter.
	minPCLMUL = 16

	// minAVX512 is where wider registers begin to pay: below, kernelPCLMUL takes
	// 5 to 7 ns, and AVX-512 1 to 3 ns more for its longer latencies.
	minAVX512 = 128
)

// best is the fastest kernel that processor and operating system allow. The
// environment variable GODEBUG may take features away: cpu.avx512f=off leaves
// kernelPCLMUL, cpu.pclmulqdq=off leaves kernelGo.
var best = bestKernel() // set once

func bestKernel() kernel {
	x := &cpu.X86
	if !x.HasPCLMULQDQ || !x.HasSSSE3 || !x.HasSSE41 {
		return kernelGo
	}
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512VBMI &&
		x.HasAVX512VPCLMULQDQ && x.HasBMI2 {
		return kernelAVX512
	}
	return kernelPCLMUL
}

// plan says how to go over n bytes: how many of them, at the front, by table,
// and whether the rest is for AVX-512. The assembly XORs the register into the
// first four bytes, which must all be in the first block.
func (k kernel) plan(n int) (table int, wide bool) {
	block := 16
	switch {
	case n < minPCLMUL:
		return n, false
	case k == kernelAVX512 && n >= minAVX512:
		block, wide = 64, true
	}
	if h := n & (block - 1); h < 4 {
		table = h
	}
	return table, wide
}

// update continues crc over p, which it does not keep: p may be on the stack.
func (k kernel) update(crc uint32, p []byte) uint32 {
	table, wide := k.plan(len(p))
	if table > 0 {
		crc = slicingUpdate(crc, p[:table])
		p = p[table:]
	}
	switch {
	case wide:
		return ^crcAVX512(^crc, p)
	case len(p) > 0:
		return ^crcPCLMUL(^crc, p)
	}
	return crc
}

// copyCRC is update that also copies p, to a dst of the same length.
func (k kernel) copyCRC(dst, src []byte, crc uint32) uint32 {
	table, wide := k.plan(len(src))
	if table > 0 {
		copy(dst, src[:table])
		crc = slicingUpdate(crc, src[:table])
		dst, src = dst[table:], src[table:]
	}
	switch {
	case wide:
		return ^copyCRCAVX512(&dst[0], src, ^crc)
	case len(src) > 0:
		return ^copyCRCPCLMUL(&dst[0], src, ^crc)
	}
	return crc
}

// The assembly keeps the register as it is, not inverted.

// crcAVX512 wants len(p) > 64, and len(p) % 64 zero or at least 4.
//
//go:noescape
func crcAVX512(crc uint32, p []byte) uint32

// copyCRCAVX512 is crcAVX512 that also copies src to dst.
//
//go:noescape
func copyCRCAVX512(dst *byte, src []byte, crc uint32) uint32

// crcPCLMUL wants len(p) >= 16, and len(p) % 16 zero or at least 4.
//
//go:noescape
func crcPCLMUL(crc uint32, p []byte) uint32

// copyCRCPCLMUL is crcPCLMUL that also copies src to dst.
//
//go:noescape
func copyCRCPCLMUL(dst *byte, src []byte, crc uint32) uint32
