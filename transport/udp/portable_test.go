package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/transport"
)

// script gives an answer a read: a datagram of one byte, or an error. The last
// one repeats.
type script struct {
	answers []error
	reads   int
}

func (s *script) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	err := s.answers[min(s.reads, len(s.answers)-1)]
	s.reads++
	if err != nil {
		return 0, netip.AddrPort{}, &net.OpError{Op: "read", Err: os.NewSyscallError("recvfrom", err)}
	}
	b[0] = byte(s.reads)
	return 1, netip.AddrPortFrom(addrB, transport.Port), nil
}

// unread is a portable Conn whose goroutine has not been started.
func unread() *portable {
	return &portable{
		addr: addrA, mtu: fallbackMTU, arrived: make(chan datagram, portableQueue), spare: make(chan []byte, 2),
		done: make(chan struct{}), stop: make(chan struct{}),
	}
}

// A few errors pass; a socket that has nothing else is given up, and its last
// error told to every reader after what had arrived before.
func TestPortableReadGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := unread(), &script{answers: []error{
			syscall.ECONNREFUSED, nil, syscall.ECONNREFUSED, syscall.EIO, nil, syscall.EIO,
		}}
		c.read(s)
		require.Equal(t, 5+readTries, s.reads)
		for range 2 {
			require.NoError(t, c.WaitRead())
		}
		slots := transport.NewBatch(c, 4)
		n, err := c.ReadBatch(slots, true)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Equal(t, []byte{2, 5}, []byte{slots[0].Data[0], slots[1].Data[0]})
		for _, wait := range []bool{false, true} {
			_, err = c.ReadBatch(slots, wait)
			require.ErrorIs(t, err, syscall.EIO)
		}
		require.ErrorIs(t, c.WaitRead(), syscall.EIO)
	})
}

// Close does not wait for a pause to end.
func TestPortableCloseWhileFailing(t *testing.T) {
	c := unread()
	go c.read(&script{answers: []error{syscall.EIO}})
	require.NoError(t, c.Close())
	_, err := c.ReadBatch(transport.NewBatch(c, 1), true)
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestFaultOfError(t *testing.T) {
	wrapped := &net.OpError{Op: "write", Err: os.NewSyscallError("sendto", syscall.ENETUNREACH)}
	require.Equal(t, fault(syscall.ENETUNREACH, false), faultOf(wrapped))
	require.Equal(t, faultOther, faultOf(errors.New("no number")))
}
