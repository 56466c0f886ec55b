package hostinfo

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// readNumber reads a file that holds one number; 0 if it cannot.
func readNumber(name string) int {
	b, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return n
}

// size writes a number of bytes in the largest binary unit that leaves it
// at least 1.
func size(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.4g KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%d B", n)
	}
}

// field returns the value of a "Name:   value" line, as /proc writes them.
func field(text, name string) (string, bool) {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok && k == name {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}
