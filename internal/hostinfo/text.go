package hostinfo

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the report for a reader: a line for each check, and below
// each that is not [OK] what it costs and how to get it.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s/%s", r.System.OS, r.System.Arch)
	if r.System.Kernel != "" {
		fmt.Fprintf(&b, ", kernel %s", r.System.Kernel)
	}
	fmt.Fprintf(&b, ", %s, cores %d\n\n", r.System.Go, r.System.Cores)
	width := 0
	for _, c := range r.Checks {
		width = max(width, len(c.Name))
	}
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-8s %-*s  %s\n", c.State, width, c.Name, c.Value)
		line(&b, width, "costs", c.Cost)
		line(&b, width, "to get it", c.Remedy)
	}
	r.writeInterfaces(&b)
	_, err := w.Write(b.Bytes())
	return err
}

func line(b *bytes.Buffer, width int, what, text string) {
	if text != "" {
		fmt.Fprintf(b, "%*s  %s: %s\n", 9+width, "", what, text)
	}
}

func (r *Report) writeInterfaces(b *bytes.Buffer) {
	b.WriteString("\ninterfaces\n")
	width := 0
	for _, i := range r.Interfaces {
		width = max(width, len(i.Name))
	}
	for _, i := range r.Interfaces {
		state := "down"
		if i.Up {
			state = "up"
		}
		fmt.Fprintf(b, "  %-*s  %-4s  mtu %-5d  path MTU %-4s  %s\n",
			width, i.Name, state, i.MTU, pathMTU(i.PathMTU), strings.Join(i.Addresses, " "))
		line(b, width-9, "AF_XDP", i.XDP)
		line(b, width-9, "costs", i.Cost)
		line(b, width-9, "to get it", i.Remedy)
	}
}

func pathMTU(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}
