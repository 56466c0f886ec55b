//go:build noasm || !(amd64 || arm64)

package crc

// The only kernel of this build.
const best = kernelGo

func (kernel) update(crc uint32, p []byte) uint32 { return slicingUpdate(crc, p) }

func (kernel) copyCRC(dst, src []byte, crc uint32) uint32 { return copyCRCGo(dst, src, crc) }
