// Package crc computes CRC-32 as Ethernet and the ICRC use it (§2.1), and copies
// bytes in the same pass. It owns the kernels for the processors that have
// instructions for it and the choice between them; package roce is its only user.
//
// The register is kept inverted, as hash/crc32 keeps it: Update(crc, b) is
// crc32.Update(crc, crc32.IEEETable, b). Nothing here allocates, and any number
// of goroutines may call it.
package crc
