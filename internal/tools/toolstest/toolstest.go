package toolstest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"github.com/stretchr/testify/require"
)

// Message is what one write put on the wire.
type Message struct {
	FromClient bool
	Data       []byte
}

// Exchange returns the messages of the one TCP connection in a capture, in order.
// The client is who sent the first packet. dir is the folder of the captures.
func Exchange(t testing.TB, dir, name string) (msgs []Message) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, name+".pcap"))
	require.NoError(t, err)
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	require.NoError(t, err)
	var client net.IP
	for {
		b, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return msgs
		}
		require.NoError(t, err)
		p := gopacket.NewPacket(b, r.LinkType(), gopacket.Default)
		tcp, ok := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if !ok {
			continue
		}
		src := net.IP(p.NetworkLayer().NetworkFlow().Src().Raw())
		if client == nil {
			client = src
		}
		if len(tcp.Payload) > 0 {
			msgs = append(msgs, Message{FromClient: src.Equal(client), Data: bytes.Clone(tcp.Payload)})
		}
	}
}

// Play is the end of a connection that the recording calls the client, or the
// server: it sends what that one sent, and after each of the other's messages
// looks at what we sent in its place, which must have come in one write of the
// same length. It returns ours.
func Play(t testing.TB, conn net.Conn, msgs []Message, client bool) (ours [][]byte) {
	t.Helper()
	defer conn.Close()
	for i, m := range msgs {
		require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		if m.FromClient == client {
			if _, err := conn.Write(m.Data); err != nil {
				t.Errorf("message %d, %q: %v", i, m.Data, err)
				return ours
			}
			continue
		}
		b := make([]byte, 4096)
		n, err := conn.Read(b)
		if err != nil || n != len(m.Data) {
			t.Errorf("message %d: got %q (%v), recorded %q", i, b[:n], err, m.Data)
			return ours
		}
		ours = append(ours, b[:n])
	}
	return ours
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
