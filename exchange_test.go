package hixl_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl"
)

// tcpPair is a TCP connection's two ends.
func tcpPair(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	b, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
	})
	return a, b
}

// Both ends get the other's address, whoever begins, and the connection carries
// on for anything else.
func TestExchange(t *testing.T) {
	for name, pair := range map[string]func(*testing.T) (net.Conn, net.Conn){
		"TCP":  tcpPair,
		"pipe": func(*testing.T) (net.Conn, net.Conn) { return net.Pipe() },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			type result struct {
				addr hixl.Address
				err  error
			}
			there := make(chan result)
			go func() {
				addr, err := hixl.ExchangeTCP(context.Background(), b, addr6)
				there <- result{addr, err}
			}()
			got, err := hixl.ExchangeTCP(context.Background(), a, addr4)
			require.NoError(t, err)
			require.Equal(t, addr6, got)
			r := <-there
			require.NoError(t, r.err)
			require.Equal(t, addr4, r.addr)

			go func() { _, _ = b.Write([]byte("more")) }()
			more := make([]byte, 4)
			_, err = io.ReadFull(a, more)
			require.NoError(t, err)
			require.Equal(t, "more", string(more), "not a byte too many was read")
		})
	}
}

func TestExchangeErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		sends string // by the other end, which then closes
		want  error
		says  string
	}{
		"other protocol":  {"SSH-2.0-OpenSSH\r\n", hixl.ErrAddress, "is a hixl of this version"},
		"other version":   {"hixl-exchange/2 x\n", hixl.ErrAddress, "is a hixl of this version"},
		"bad address":     {"hixl-exchange/1 hixl1,1.2.3.4\n", hixl.ErrAddress, "2 fields"},
		"endless line":    {strings.Repeat("x", 10000), hixl.ErrAddress, "without a line feed"},
		"nothing":         {"", io.EOF, "receiving"},
		"half an address": {"hixl-exchange/1 hixl1,1.2.3", io.EOF, "receiving"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := tcpPair(t)
			go func() {
				_, _ = b.Write([]byte(tt.sends))
				_ = b.(*net.TCPConn).CloseWrite()
			}()
			_, err := hixl.ExchangeTCP(context.Background(), a, addr4)
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.says)
			require.ErrorContains(t, err, b.LocalAddr().String(), "it names the peer")
			var bad *hixl.ExchangeError
			require.True(t, errors.As(err, &bad))
		})
	}
	t.Run("local address", func(t *testing.T) {
		a, _ := tcpPair(t)
		_, err := hixl.ExchangeTCP(context.Background(), a, hixl.Address{})
		require.ErrorIs(t, err, hixl.ErrAddress)
	})
}

// The context ends an exchange with a peer that says nothing, and the connection
// has no deadline afterwards.
func TestExchangeCancelled(t *testing.T) {
	a, b := tcpPair(t)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // as soon as our line has arrived
		_, _ = b.Read(make([]byte, 1))
		cancel()
	}()
	_, err := hixl.ExchangeTCP(ctx, a, addr4)
	require.ErrorIs(t, err, context.Canceled)
	_, err = hixl.ExchangeTCP(ctx, a, addr4)
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.Write([]byte("x"))
	require.NoError(t, err)
	_, err = a.Read(make([]byte, 1))
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}
