package bridge

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"time"
)

// The head of a capture file: little endian, times in microseconds.
const (
	pcapMagic   = 0xa1b2c3d4
	pcapMajor   = 2
	pcapMinor   = 4
	pcapSnap    = maxFrame
	pcapHead    = 24
	pcapRecord  = 16
	pcapBuffer  = 1 << 16
	microsecond = int64(time.Microsecond)
)

// capture writes a capture file. Switch.mu guards it.
type capture struct {
	w   *bufio.Writer
	c   io.Closer
	err error
}

// Capture records every RoCE packet from now on as it comes in, before faults,
// in the pcap format, until StopCapture or Close, which close w. It ends a
// capture that runs.
func (s *Switch) Capture(w io.WriteCloser) error {
	if err := s.StopCapture(); err != nil {
		return errors.Join(err, w.Close())
	}
	c := &capture{w: bufio.NewWriterSize(w, pcapBuffer), c: w}
	var b [pcapHead]byte
	le := binary.LittleEndian
	le.PutUint32(b[0:], pcapMagic)
	le.PutUint16(b[4:], pcapMajor)
	le.PutUint16(b[6:], pcapMinor)
	le.PutUint32(b[16:], pcapSnap)
	le.PutUint32(b[20:], 1) // Ethernet
	_, c.err = c.w.Write(b[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.capture = c
	return nil
}

// StopCapture ends the capture that runs, if one does, and returns the first
// error in writing it.
func (s *Switch) StopCapture() error {
	s.mu.Lock()
	c := s.capture
	s.capture = nil
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	return errors.Join(c.err, c.w.Flush(), c.c.Close())
}

func (c *capture) write(frame []byte) {
	if c.err != nil {
		return
	}
	var b [pcapRecord]byte
	le, now := binary.LittleEndian, time.Now()
	le.PutUint32(b[0:], uint32(now.Unix()))
	le.PutUint32(b[4:], uint32(int64(now.Nanosecond())/microsecond))
	le.PutUint32(b[8:], uint32(len(frame)))
	le.PutUint32(b[12:], uint32(len(frame)))
	if _, c.err = c.w.Write(b[:]); c.err == nil {
		_, c.err = c.w.Write(frame)
	}
}
