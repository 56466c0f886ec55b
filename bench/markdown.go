package bench

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// WriteMarkdown writes the results and baselines as a table for a document.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	c := &r.Config
	fmt.Fprintf(&b, "%s; %s, region %s, %d rounds in turns, %s a cell.\n\n", Machine(), c.Mode+pinnedTo(c.Pinned), formatSize(c.Region), c.Rounds, c.Duration)
	rows := r.rows()
	for i, row := range rows {
		for len(row) < len(rows[0]) {
			row = append(row, "")
		}
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	b.WriteString("\n" + strings.ReplaceAll(strings.TrimSpace(r.legend()), "\n", "<br>\n") + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// UpdateSection replaces what stands in a file between the lines
// "<!-- name: begin -->" and "<!-- name: end -->" by what write writes.
func UpdateSection(file, name string, write func(io.Writer) error) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("bench: updating results: %w", err)
	}
	begin, end := []byte("<!-- "+name+": begin -->\n"), []byte("<!-- "+name+": end -->")
	from := bytes.Index(old, begin)
	to := bytes.Index(old, end)
	if from < 0 || to < from {
		return fmt.Errorf("bench: updating results: %s has no section %q between its begin and end comments", file, name)
	}
	var b bytes.Buffer
	b.Write(old[:from+len(begin)])
	if err := write(&b); err != nil {
		return err
	}
	b.Write(old[to:])
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("bench: updating results: %w", err)
	}
	return nil
}
