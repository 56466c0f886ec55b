package hostinfo

import (
	"fmt"
	"os"
	"strings"
)

func hugePageCheck() Check {
	thp, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled") // empty: a kernel without them
	mem, _ := os.ReadFile("/proc/meminfo")
	return judgeHugePages(string(thp), string(mem))
}

// judgeHugePages weighs the kernel's files on transparent and reserved huge
// pages.
func judgeHugePages(thp, meminfo string) Check {
	mode := "absent"
	if _, rest, ok := strings.Cut(thp, "["); ok {
		mode, _, _ = strings.Cut(rest, "]")
	}
	reserved, ok := field(meminfo, "HugePages_Total")
	if !ok {
		reserved = "0"
	}
	pageSize, _ := field(meminfo, "Hugepagesize")
	c := Check{Name: "huge_pages", State: OK, Value: fmt.Sprintf("transparent: %s; reserved: %s of %s", mode, reserved, pageSize)}
	if mode == "always" || mode == "madvise" {
		return c
	}
	return c.needs(Missing, "up to a fifth of the copy bandwidth on regions of megabytes",
		"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
}
