package agent

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// A connection carries one request: a line of JSON, and for a file its bytes.
// The answer is frames: a kind, a length of four bytes, and as many bytes.

// request is what a client wants.
type request struct {
	Command string `json:"command,omitempty"` // for the shell
	Path    string `json:"path,omitempty"`    // of a file to store
	Mode    uint32 `json:"mode,omitempty"`
	Size    int64  `json:"size,omitempty"`
}

// Kinds of frames.
const (
	kindStdout = 'o'
	kindStderr = 'e'
	kindExit   = 'x' // the last: the status in decimal
	kindError  = 'f' // the last instead: why the request could not be served
)

const (
	maxRequest = 1 << 20
	maxChunk   = 1 << 15 // bytes in a frame
	frameHead  = 5
)

// ErrProtocol is what a broken conversation unwraps to.
var ErrProtocol = errors.New("agent: no sense in what came")

func readRequest(r *bufio.Reader) (request, error) {
	var q request
	line, err := readLine(r)
	if err != nil {
		return q, err
	}
	if err := json.Unmarshal(line, &q); err != nil {
		return q, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if (q.Command == "") == (q.Path == "") || q.Size < 0 {
		return q, fmt.Errorf("%w: a request is a command or a path", ErrProtocol)
	}
	return q, nil
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for len(line) <= maxRequest {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
	return nil, fmt.Errorf("%w: a request of more than %d bytes", ErrProtocol, maxRequest)
}

// frames writes frames from several goroutines.
type frames struct {
	mu sync.Mutex
	w  io.Writer
}

func (f *frames) write(kind byte, b []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	head := [frameHead]byte{kind}
	binary.BigEndian.PutUint32(head[1:], uint32(len(b)))
	_, err := f.w.Write(append(head[:], b...))
	return err
}

// stream is one kind of frames as a writer.
type stream struct {
	frames *frames
	kind   byte
}

func (s stream) Write(b []byte) (int, error) {
	for at := 0; at < len(b); {
		end := min(at+maxChunk, len(b))
		if err := s.frames.write(s.kind, b[at:end]); err != nil {
			return at, err
		}
		at = end
	}
	return len(b), nil
}

func readFrame(r io.Reader) (kind byte, b []byte, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxChunk {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes", ErrProtocol, n)
	}
	b = make([]byte, n)
	_, err = io.ReadFull(r, b)
	return head[0], b, err
}
