package crc

import (
	"fmt"
	"hash/crc32"
	"testing"
)

var crcSizes = []int{16, 64, 256, 1024, 4096, 4136, 65536}

// benchSizes runs a benchmark for each size. The result goes into the next
// call, as a packet's does, so that it is the latency of a call that counts.
// Where a destination is written it is 28 bytes off a cache line, as the
// payload behind IPv4 and UDP headers.
func benchSizes(b *testing.B, name string, run func(dst, src []byte, crc uint32) uint32) {
	for _, n := range crcSizes {
		b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
			src, dst := make([]byte, n), make([]byte, n+28)[28:]
			b.SetBytes(int64(n))
			b.ReportAllocs()
			var crc uint32
			for b.Loop() {
				crc = run(dst, src, crc)
			}
		})
	}
}

func BenchmarkCRC(b *testing.B) {
	benchSizes(b, "hash-crc32", func(_, src []byte, crc uint32) uint32 {
		return crc32.Update(crc, crc32.IEEETable, src)
	})
	for _, k := range hostKernels()[1:] {
		benchSizes(b, kernelNames[k], func(_, src []byte, crc uint32) uint32 { return k.update(crc, src) })
	}
}

func BenchmarkCopy(b *testing.B) {
	benchSizes(b, "copy-alone", func(dst, src []byte, crc uint32) uint32 {
		copy(dst, src)
		return crc
	})
	benchSizes(b, "copy-then-hash-crc32", copyCRCGo)
	for _, k := range hostKernels()[1:] {
		benchSizes(b, kernelNames[k], k.copyCRC)
	}
}
