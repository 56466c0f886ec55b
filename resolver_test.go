package hixl_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// names is a resolver that knows a few names, as a DNS server over a stream in
// this process (RFC 1035).
func names(t *testing.T, known map[string][]string) *net.Resolver {
	t.Helper()
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			for {
				size := make([]byte, 2)
				if _, err := io.ReadFull(there, size); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(size))
				if _, err := io.ReadFull(there, query); err != nil {
					return
				}
				answer := answerTo(query, known)
				if _, err := there.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
					return
				}
			}
		}()
		return here, nil
	}}
}

func answerTo(query []byte, known map[string][]string) []byte {
	var name strings.Builder
	at := 12
	for query[at] != 0 {
		name.Write(query[at+1 : at+1+int(query[at])])
		name.WriteByte('.')
		at += 1 + int(query[at])
	}
	question := query[12 : at+5]
	addrs := known[name.String()]
	b := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, byte(len(addrs)), 0, 0, 0, 0}, question...)
	if len(addrs) == 0 {
		b[3] |= 3 // no such name
	}
	for _, a := range addrs {
		b = append(b, 0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
		b = append(b, netip.MustParseAddr(a).AsSlice()...)
	}
	return b
}
