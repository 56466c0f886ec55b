package peerwire

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

var someID = ID{1, 2, 3, 15: 9}

func TestHello(t *testing.T) {
	h := Hello{Lane: 1, Lanes: 2, Port: 18515, ID: someID, Session: 0x1122334455667788, Generation: 7, Credits: 4096}
	b := h.Append(nil)
	require.Equal(t, []byte("hx\x01\x00\x01\x02\x48\x53\x01\x02\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09"+
		"\x11\x22\x33\x44\x55\x66\x77\x88\x00\x00\x00\x07\x00\x00\x10\x00"), b)
	require.Len(t, b, HelloLen)
	var got Hello
	require.NoError(t, got.Decode(b))
	require.Equal(t, h, got)
	for n := range b {
		require.Error(t, got.Decode(b[:n]))
	}
	require.ErrorIs(t, got.Decode(append(b, 0)), ErrMalformed)
	for at, v := range map[int]byte{4: 2, 5: 17, 35: 0} { // beyond the lanes, too many of them, generation 0
		bad := bytes.Clone(b)
		bad[at] = v
		require.ErrorIs(t, got.Decode(bad), ErrMalformed, at)
	}
	bad := bytes.Clone(b)
	bad[2] = 2
	require.ErrorIs(t, got.Decode(bad), ErrVersion)
	bad[0] = 'H'
	require.ErrorIs(t, got.Decode(bad), ErrForeign)
}

func TestWelcome(t *testing.T) {
	w := Welcome{ID: someID, New: true, Credits: 256}
	b := w.Append(nil)
	require.Len(t, b, WelcomeLen)
	var got Welcome
	require.NoError(t, got.Decode(b))
	require.Equal(t, w, got)
	require.ErrorIs(t, got.Decode(make([]byte, WelcomeLen)), ErrForeign)
	require.ErrorIs(t, got.Decode((&Welcome{}).Append(nil)), ErrMalformed, "no incarnation has this id")
	require.ErrorIs(t, got.Decode(b[:20]), ErrMalformed)
}

func TestRefusal(t *testing.T) {
	b := append(RefusedPeers.Append(nil), make([]byte, 100)...)
	r, ok := DecodeRefusal(b)
	require.True(t, ok)
	require.Contains(t, r.String(), "MaxPeers")
	_, ok = DecodeRefusal(make([]byte, 148))
	require.False(t, ok)
	require.Contains(t, Refusal(99).String(), "not known")
}

func TestMessages(t *testing.T) {
	for _, m := range []Message{
		{Kind: Lookup, Number: 5, Name: []byte("weights")},
		{Kind: Found, Number: 5, Known: true, Region: Region{ID: 9, Generation: 2, RKey: 0xdeadbeef, Addr: 1 << 40, Len: 1 << 30, Access: 7}},
		{Kind: Revoke, ID: 77},
		{Kind: Notify, Name: []byte("done"), Data: []byte{1, 2, 3}},
		{Kind: Notify, Name: bytes.Repeat([]byte{'n'}, MaxNotify), Data: bytes.Repeat([]byte{'d'}, MaxNotify)},
		{Kind: Notify, Name: []byte{}, Data: []byte{}},
		{Kind: Credit, Count: 1 << 50},
		{Kind: Bye, Reason: ByeEvicted},
	} {
		b := m.Append(nil)
		require.LessOrEqual(t, len(b), MaxMessage)
		var got Message
		require.NoError(t, got.Decode(b))
		require.Equal(t, m, got)
	}
	for name, b := range map[string]string{
		"empty": "", "short": "\x01\x01\x00\x00\x00\x00\x00", "version": "\x02\x01\x00\x00\x00\x00\x00\x05w", "kind": "\x01\x63\x00\x00\x00\x00\x00\x05w",
		"reserved": "\x01\x01\x00\x01\x00\x00\x00\x05w", "no name": "\x01\x01\x00\x00\x00\x00\x00\x05", "long name": "\x01\x04\x00\x00\x00\x00\x00\x05\x00\x02n",
		"revoke": "\x01\x03\x00\x00\x00\x00\x00\x05\x00\x02n", "bye": "\x01\x06\x00\x00\x00\x00\x00\x05", "found": "\x01\x02\x00\x00\x00\x00\x00\x05\x00",
		"notify": "\x01\x04\x00\x00\x00\x00\x00\x05\x00",
	} {
		require.Error(t, new(Message).Decode([]byte(b)), name)
	}
	wraps := Message{Kind: Found, Region: Region{Addr: 1 << 63, Len: 1 << 63}}
	require.ErrorIs(t, new(Message).Decode(wraps.Append(nil)), ErrMalformed)
}

// What a peer sends makes nothing worse than an error, and what is taken is said
// again in the same bytes.
func FuzzMessage(f *testing.F) {
	for _, m := range []Message{{Kind: Lookup, Name: []byte("a")}, {Kind: Found}, {Kind: Revoke}, {Kind: Notify, Name: []byte("n"), Data: []byte("d")}, {Kind: Credit}, {Kind: Bye, Reason: 1}} {
		f.Add(m.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Message
		if m.Decode(b) == nil {
			require.Equal(t, b, m.Append(nil))
		}
	})
}

// The same for private data.
func FuzzHello(f *testing.F) {
	f.Add((&Hello{Lanes: 1, Generation: 1, ID: someID}).Append(nil))
	f.Add((&Welcome{ID: someID}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Hello
		if h.Decode(b) == nil && b[3] == 0 {
			require.Equal(t, b, h.Append(nil))
		}
		_ = new(Welcome).Decode(b)
		DecodeRefusal(b)
	})
}
