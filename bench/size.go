package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxMessage is the largest message that a cell may send, in bytes (1 GiB;
// the protocol would allow 2 GiB).
const MaxMessage = 1 << 30

// sizeUnits are binary: 4k is 4096 bytes, however it is written.
var sizeUnits = []struct {
	name  string
	bytes int
}{
	{"gib", 1 << 30},
	{"mib", 1 << 20},
	{"kib", 1 << 10},
	{"gb", 1 << 30},
	{"mb", 1 << 20},
	{"kb", 1 << 10},
	{"g", 1 << 30},
	{"m", 1 << 20},
	{"k", 1 << 10},
	{"b", 1},
}

// parseSize reads 64, 4k, 64KiB, 1MiB; units are binary and case does not count.
func parseSize(flag, s string) (int, error) {
	bad := &FlagError{
		Flag: flag, Given: strconv.Quote(s), Allowed: "1 to 1GiB, such as 64, 4k, 64KiB or 1MiB",
		Do: "give whole numbers, several separated by commas",
	}
	num, unit := strings.ToLower(strings.TrimSpace(s)), 1
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(num, u.name); ok {
			num, unit = strings.TrimSpace(n), u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(num, 10, 32)
	if err != nil || n == 0 || n > uint64(MaxMessage/unit) {
		return 0, bad
	}
	return int(n) * unit, nil
}

// formatSize writes a size as people do: 64, 4KiB, 1MiB.
func formatSize(n int) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%dGiB", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	default:
		return strconv.Itoa(n)
	}
}
