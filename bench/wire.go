package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest control message in bytes: the addresses of MaxQPs
// queue pairs fit. A peer that sends more is cut off, so that nobody can make
// this side allocate without end.
const maxLine = 2 << 20

// errLineTooLong is a control message beyond maxLine.
var errLineTooLong = fmt.Errorf("control message longer than %d bytes", maxLine)

// wire is a control connection: a JSON object a line, each way.
type wire struct {
	r *bufio.Reader
	w io.Writer
}

func newWire(r io.Reader, w io.Writer) *wire {
	return &wire{r: bufio.NewReaderSize(r, 64<<10), w: w}
}

// send writes one message in one call.
func (c *wire) send(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) >= maxLine {
		return errLineTooLong
	}
	_, err = c.w.Write(append(b, '\n'))
	return err
}

// receive reads one message into v. It returns io.EOF when the other side hung
// up between messages.
func (c *wire) receive(v any) error {
	line, err := c.line()
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("control message %.80q: %w", line, err)
	}
	return nil
}

func (c *wire) line() ([]byte, error) {
	var line []byte
	for {
		part, err := c.r.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, errLineTooLong
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
