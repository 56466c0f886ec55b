package hostinfo

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// identAddr is a loopback address that nothing else uses, so that a raw socket
// bound to it sees the probe's packet and no other.
var identAddr = [4]byte{127, 83, 47, 91}

// ident is what the IPv4 header of a sent packet says.
type ident struct {
	id uint16
	df bool
}

// identCheck looks at the header that an unconnected socket with path MTU
// discovery sends, which the ICRC covers and the sender has to know (§1.5).
func identCheck() Check {
	h, err := probeIdent()
	return judgeIdent(h, err)
}

func judgeIdent(h ident, err error) Check {
	c := Check{Name: "ipv4_id", State: OK, Value: "unconnected sockets send identification 0 and DF"}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		c.Value = "the IP header of our own packets cannot be seen without CAP_NET_RAW"
		return c.needs(Unknown, "none; Linux has sent identification 0 here since long", "run once with CAP_NET_RAW to be sure")
	}
	if err != nil {
		c.Value = fmt.Sprintf("not seen: %v", err)
		return c.needs(Unknown, "unknown", "see udp_gso")
	}
	if h.id == 0 && h.df {
		return c
	}
	c.Value = fmt.Sprintf("an unconnected socket sent identification %d, DF %t", h.id, h.df)
	return c.needs(Missing, "peers drop our IPv4 packets: their ICRC is computed for identification 0 and DF",
		"use IPv6, which has no identification; and look for a packet filter or kernel patch that rewrites headers")
}

// probeIdent sends a packet the way a NIC does and reads its header with a raw
// socket.
func probeIdent() (ident, error) {
	raw, err := socket(unix.SOCK_RAW, unix.IPPROTO_UDP)
	if err != nil {
		return ident{}, err
	}
	defer closeAll(raw)
	if err := unix.Bind(raw, &unix.SockaddrInet4{Addr: identAddr}); err != nil {
		return ident{}, err
	}
	tx, err := socket(unix.SOCK_DGRAM, 0)
	if err != nil {
		return ident{}, err
	}
	defer closeAll(tx)
	if err := unix.SetsockoptInt(tx, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO); err != nil {
		return ident{}, err
	}
	// The discard port: nobody is there, and an unconnected socket does not care.
	if err := unix.Sendto(tx, []byte("hixl"), 0, &unix.SockaddrInet4{Addr: identAddr, Port: 9}); err != nil {
		return ident{}, err
	}
	buf := make([]byte, 128)
	n, _, err := unix.Recvfrom(raw, buf, 0)
	if err != nil {
		return ident{}, err
	}
	return parseIdent(buf[:n])
}

// parseIdent reads the fields of an IPv4 header.
func parseIdent(b []byte) (ident, error) {
	if len(b) < 20 || b[0]>>4 != 4 {
		return ident{}, errors.New("no IPv4 header")
	}
	return ident{id: binary.BigEndian.Uint16(b[4:]), df: b[6]&0x40 != 0}, nil
}
