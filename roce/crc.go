package roce

import "github.com/gohixl/hixl/roce/internal/crc"

// icrcInit is the CRC of the eight 0xFF bytes that stand in for a masked link
// header (§2.1): the register 0xDEBB20E3, inverted as hash/crc32 keeps it.
const icrcInit uint32 = ^uint32(0xDEBB20E3)

// CopyCRC copies src to the start of dst and continues a CRC-32 over it, in one
// pass. reg and the result are the register as hash/crc32 keeps it, inverted:
// CopyCRC(dst, src, reg) is crc32.Update(reg, crc32.IEEETable, src). dst must
// be at least as long as src, or CopyCRC panics, and must not overlap it. Bytes
// of dst past len(src) stay as they are. It allocates nothing, and any number
// of goroutines may call it.
func CopyCRC(dst, src []byte, reg uint32) uint32 { return crc.Copy(dst, src, reg) }
