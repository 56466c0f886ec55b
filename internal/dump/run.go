package dump

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Options says how to print. The zero value prints text.
type Options struct {
	JSON bool // an object a line instead of text, the summary last
}

const writeBuffer = 1 << 16

// Run reads a capture, prints a line a packet to out, and a summary as the last
// line, and returns it. When the capture ends in an error, all that came before
// is printed, with its summary, and the error is returned: a *[CaptureError], or
// what in or out gave. Output is written when a buffer is full, when the input
// has nothing more to give at once, and at the end.
func Run(in io.Reader, out io.Writer, o Options) (Summary, error) {
	r, err := NewReader(in)
	if err != nil {
		return Summary{}, err
	}
	w := bufio.NewWriterSize(out, writeBuffer)
	s, err := packets(r, w, o)
	var cut *CaptureError
	if err != nil && !errors.As(err, &cut) {
		return s, errors.Join(err, w.Flush())
	}
	if werr := writeSummary(w, s, o); werr != nil {
		return s, fmt.Errorf("writing the dump: %w", werr)
	}
	return s, err
}

// packets prints all packets and returns the error that ended the capture, nil
// at its proper end.
func packets(r *Reader, w *bufio.Writer, o Options) (s Summary, err error) {
	var (
		p    Packet
		f    finding
		line []byte
		t    = text{fine: r.Nanoseconds()}
	)
	for {
		if r.Buffered() == 0 { // the next read may wait for a live capture
			if err := w.Flush(); err != nil {
				return s, fmt.Errorf("writing the dump: %w", err)
			}
		}
		switch err := r.Next(&p); {
		case errors.Is(err, io.EOF):
			return s, nil
		case err != nil:
			return s, err
		}
		f.inspect(&p)
		f.count(&s)
		if o.JSON {
			line, err = appendJSON(line[:0], s.Packets, &p, &f)
		} else {
			line = t.append(line[:0], s.Packets, &p, &f)
		}
		if err == nil {
			_, err = w.Write(line)
		}
		if err != nil {
			return s, fmt.Errorf("writing the dump: %w", err)
		}
	}
}

func writeSummary(w *bufio.Writer, s Summary, o Options) error {
	line := []byte(s.String())
	if o.JSON {
		var err error
		if line, err = json.Marshal(s); err != nil {
			return err
		}
	}
	_, err := w.Write(append(line, '\n'))
	return errors.Join(err, w.Flush())
}
