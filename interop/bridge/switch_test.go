package bridge

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

func TestSwitchLearns(t *testing.T) {
	_, w := plug(t, "one", "two", "three")
	question := frame([]byte{255, 255, 255, 255, 255, 255}, mac(1), 0x0806, []byte("who has"))
	w[0].in <- question
	require.Equal(t, question, <-w[1].out)
	require.Equal(t, question, <-w[2].out)

	answer := frame(mac(1), mac(2), 0x0806, []byte("I have"))
	w[1].in <- answer
	require.Equal(t, answer, <-w[0].out)
	settle(w[1])
	require.Empty(t, w[2].out, "the way to the first host is known")

	w[0].in <- frame(mac(1), mac(9), 0x0806, []byte("to its own side"))
	settle(w[0])
	require.Empty(t, w[0].out)
	require.Empty(t, w[1].out)
}

func TestPortNames(t *testing.T) {
	s, w := plug(t, "one")
	require.ErrorIs(t, s.Attach("one", newWire()), ErrPort)
	require.ErrorIs(t, s.Detach("two"), ErrPort)
	require.ErrorIs(t, s.SetFaults("two", Faults{}), ErrPort)
	require.NoError(t, s.Detach("one"))
	<-w[0].gone
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Attach("one", newWire()), ErrPort)
}

// A guest that died takes its port along, and what is sent to it goes nowhere.
func TestPortThatFails(t *testing.T) {
	s, w := plug(t, "one", "two")
	w[1].in <- frame(mac(1), mac(2), 0x0806, nil)
	settle(w[1])
	require.NoError(t, w[1].Close())
	require.Eventually(t, func() bool { return len(s.Counts()) == 1 }, testWait, testPoll)
	w[0].in <- packet(roce.OpSendOnly, 1, false)
	settle(w[0])
	require.Empty(t, w[1].out)
}

// late is a port that still gives a frame after it was closed.
type late struct {
	*wire
	given bool
}

func (l *late) Read(b []byte) (int, error) {
	<-l.gone
	if l.given {
		return 0, io.EOF
	}
	l.given = true
	return copy(b, frame(mac(1), mac(2), 0x0806, nil)), nil
}

func TestFrameOfDetachedPort(t *testing.T) {
	s, w := plug(t, "one")
	require.NoError(t, s.Attach("two", &late{wire: newWire()}))
	require.NoError(t, s.Detach("two"))
	require.NoError(t, s.Close()) // waits for it
	require.Empty(t, w[0].out)
	require.Empty(t, s.where)
}

func TestQueueOverflow(t *testing.T) {
	s, w := plug(t, "one", "stuck")
	w[1].out = make(chan []byte) // takes nothing
	f := packet(roce.OpSendOnly, 1, false)
	for range queueLen + 10 {
		w[0].in <- f
	}
	settle(w[0])
	require.GreaterOrEqual(t, s.Counts()["stuck"].Overflow, uint64(9))
	go func() {
		for range w[1].out { // lets the switch close
		}
	}()
	require.NoError(t, s.Close())
	close(w[1].out)
}

type file struct {
	bytes.Buffer
	closed bool
}

func (f *file) Close() error {
	f.closed = true
	return nil
}

func TestCapture(t *testing.T) {
	s, w := plug(t, "one", "two")
	require.NoError(t, s.SetFaults("one", Faults{Loss: 1}))
	var got file
	require.NoError(t, s.Capture(&got))
	sent := packet(roce.OpSendOnly, 7, false)
	w[0].in <- sent
	w[0].in <- frame(mac(2), mac(1), 0x0806, []byte("not RoCE"))
	settle(w[0])
	require.NoError(t, s.StopCapture())
	require.True(t, got.closed)
	b := got.Bytes()
	require.Len(t, b, pcapHead+pcapRecord+len(sent))
	require.Equal(t, []byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0}, b[:8])
	require.Equal(t, sent, b[pcapHead+pcapRecord:], "as it was sent, although it was lost")
}
