//go:build !noasm

package crc

import "golang.org/x/sys/cpu"

// The kernels of arm64.
const (
	kernelCRC32 kernel = 1 + iota // the CRC32 instructions, 8 bytes each
	kernelPMULL                   // two streams of them, joined by a carry-less multiplication
)

// best is the fastest kernel that the processor has instructions for. The
// environment variable GODEBUG may take them away: cpu.pmull=off leaves
// kernelCRC32, cpu.crc32=off leaves kernelGo.
var best = bestKernel() // set once

func bestKernel() kernel {
	switch {
	case cpu.ARM64.HasCRC32 && cpu.ARM64.HasPMULL:
		return kernelPMULL
	case cpu.ARM64.HasCRC32:
		return kernelCRC32
	}
	return kernelGo
}

// A CRC32 instruction takes two or three cycles, and one may start in each. Two
// independent streams keep the unit busy: the halves of pairLen bytes, of which
// the second starts from a register of zero. What the first leaves in the
// register is then moved past the second: multiplied by x^(8·pairLen/2).
const (
	pairLen = 1024

	// The product of two 32-bit registers, 63 bits, taken by CRC32X as eight
	// bytes of message, is a·b·x^33: one x for the reflected product being a bit
	// short, x^32 for what a CRC does to its message. So this is
	// x^(8·512-33) mod P; TestPairShift derives it.
	pairShift = 0x0c30f51d
)

// update continues crc over p, which it does not keep: p may be on the stack.
func (k kernel) update(crc uint32, p []byte) uint32 {
	crc = ^crc
	if n := k.pairs(len(p)); n > 0 {
		crc = crcPairs(crc, p[:n])
		p = p[n:]
	}
	return ^crcWords(crc, p)
}

// copyCRC is update that also copies p, to a dst of the same length.
func (k kernel) copyCRC(dst, src []byte, crc uint32) uint32 {
	crc = ^crc
	if n := k.pairs(len(src)); n > 0 {
		crc = copyCRCPairs(&dst[0], src[:n], crc)
		dst, src = dst[n:], src[n:]
	}
	if len(src) > 0 {
		crc = copyCRCWords(&dst[0], src, crc)
	}
	return ^crc
}

// pairs returns how many of n bytes go in two streams.
func (k kernel) pairs(n int) int {
	if k != kernelPMULL {
		return 0
	}
	return n &^ (pairLen - 1)
}

// The assembly keeps the register as it is, not inverted.

//go:noescape
func crcWords(crc uint32, p []byte) uint32

// copyCRCWords is crcWords that also copies src to dst.
//
//go:noescape
func copyCRCWords(dst *byte, src []byte, crc uint32) uint32

// crcPairs wants len(p) to be a multiple of pairLen, and not zero.
//
//go:noescape
func crcPairs(crc uint32, p []byte) uint32

// copyCRCPairs is crcPairs that also copies src to dst.
//
//go:noescape
func copyCRCPairs(dst *byte, src []byte, crc uint32) uint32
