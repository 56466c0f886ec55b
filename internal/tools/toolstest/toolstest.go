package toolstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

// Message is what one write put on the wire.
type Message struct {
	FromClient bool
	Data       []byte
}

// frames gives the frames of a capture to f, one by one. dir is the folder of the
// captures.
func frames(t testing.TB, dir, name string, f func(link layers.LinkType, b []byte)) {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, name+".pcap"))
	require.NoError(t, err)
	defer file.Close()
	r, err := pcapgo.NewReader(file)
	require.NoError(t, err)
	for {
		b, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		f(r.LinkType(), b)
	}
}

// Exchange returns the messages of the one TCP connection in a capture, in order.
// The client is who sent the first packet. dir is the folder of the captures.
func Exchange(t testing.TB, dir, name string) (msgs []Message) {
	t.Helper()
	var client net.IP
	frames(t, dir, name, func(link layers.LinkType, b []byte) {
		p := gopacket.NewPacket(b, link, gopacket.Default)
		tcp, ok := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if !ok {
			return
		}
		src := net.IP(p.NetworkLayer().NetworkFlow().Src().Raw())
		if client == nil {
			client = src
		}
		if len(tcp.Payload) > 0 {
			msgs = append(msgs, Message{FromClient: src.Equal(client), Data: bytes.Clone(tcp.Payload)})
		}
	})
	return msgs
}

// SendExchange returns what went over the first connection of the connection
// manager in a capture, a SEND each. The client is who sent the first packet.
func SendExchange(t testing.TB, dir, name string) (msgs []Message) {
	t.Helper()
	var client netip.Addr
	frames(t, dir, name, func(link layers.LinkType, b []byte) {
		var frame roce.Frame
		var p roce.Packet
		require.NoError(t, roce.DecodeFrame(roce.LinkType(link), b, &frame))
		require.NoError(t, p.Decode(frame.Payload))
		if !client.IsValid() {
			client = frame.Src
		}
		if p.Opcode == roce.OpSendOnly {
			msgs = append(msgs, Message{FromClient: frame.Src == client, Data: bytes.Clone(p.Payload)})
		}
	})
	return msgs
}

// Recorder is our end of a connection. It keeps each write, since the originals
// read every message of an exchange with one read.
type Recorder struct {
	net.Conn
	mu     sync.Mutex
	writes [][]byte // guarded by mu
}

func (r *Recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.writes = append(r.writes, bytes.Clone(b))
	r.mu.Unlock()
	return r.Conn.Write(b)
}

// CloseWrite is that of TCP.
func (r *Recorder) CloseWrite() error {
	if c, ok := r.Conn.(*net.TCPConn); ok {
		return c.CloseWrite()
	}
	return nil
}

// Writes returns what was written, a slice for each call.
func (r *Recorder) Writes() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes
}

// Connection returns both ends of a TCP connection, ours and a peer's. They are
// closed when the test ends.
func Connection(t testing.TB) (*Recorder, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	ours, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	theirs := <-accepted
	require.NotNil(t, theirs)
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	return &Recorder{Conn: ours}, theirs
}

// Play is the end of a connection that the recording calls the client, or the
// server: it sends what that one sent, each message when all before it have been
// there, and closes the connection. It is for a goroutine of its own.
func Play(conn net.Conn, msgs []Message, client bool) error {
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(Patience)); err != nil {
		return err
	}
	for i, m := range msgs {
		var err error
		if m.FromClient == client {
			_, err = conn.Write(m.Data)
		} else {
			_, err = io.ReadFull(conn, make([]byte, len(m.Data)))
		}
		if err != nil {
			return fmt.Errorf("message %d, %q: %w", i, m.Data, err)
		}
	}
	return nil
}

// Recorded returns the data of one side.
func Recorded(msgs []Message, client bool) (out [][]byte) {
	for _, m := range msgs {
		if m.FromClient == client {
			out = append(out, m.Data)
		}
	}
	return out
}
