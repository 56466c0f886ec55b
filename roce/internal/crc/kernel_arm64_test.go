//go:build !noasm

package crc

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
)

var kernelNames = []string{kernelGo: "go", kernelCRC32: "crc32", kernelPMULL: "pmull"}

// featuresOff are settings of GODEBUG and the kernel they leave.
var featuresOff = map[string]string{
	"cpu.pmull=off": "crc32",
	"cpu.crc32=off": "go",
}

func TestPairShift(t *testing.T) {
	require.Equal(t, bits.Reverse32(powerOfX(8*pairLen/2-33)), uint32(pairShift))
}
