//go:build !noasm

package crc

var kernelNames = []string{kernelGo: "go", kernelPCLMUL: "pclmul", kernelAVX512: "avx512"}

// featuresOff are settings of GODEBUG and the kernel they leave.
var featuresOff = map[string]string{
	"cpu.avx512f=off":   "pclmul",
	"cpu.pclmulqdq=off": "go",
}
