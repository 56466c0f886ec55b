package hixl

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/gohixl/hixl/qp"
	"github.com/gohixl/hixl/roce"
)

// ErrAddress is what errors of parsing or using an [Address] unwrap to.
var ErrAddress = errors.New("hixl: bad address")

// Address is what one side must know of the other to connect to its queue pair.
// It has a text and a binary form, both with a version.
type Address struct {
	// Addr is the NIC's IP address, without zone.
	Addr netip.Addr
	// QPN is the queue pair's number, PSN the packet sequence number of its first
	// request.
	QPN QPN
	PSN PSN
	// MTU is the largest path MTU in bytes.
	MTU int
	// MaxReads is the number of READs and atomics it serves at a time, 0..128.
	MaxReads int
	// Hixl says that it sends only the IPv4 identifications 0 to 127, which makes
	// the check of its packets stricter. Leave it out for other stacks.
	Hixl bool
}

// AddressError says why something is no Address. It unwraps to [ErrAddress].
type AddressError struct {
	Input   string // what was given
	Problem string
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("hixl: bad address %.200q: %s; it looks like %q", e.Input, e.Problem, addressSample)
}

// Unwrap returns [ErrAddress].
func (e *AddressError) Unwrap() error { return ErrAddress }

const (
	addressTag    = "hixl1" // with the version of the text form
	addressSample = "hixl1,10.0.0.1,qpn=0x00a1b2,psn=0x00c3d4,mtu=4096,reads=16,hixl"
)

// broadcast is every host at once.
var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// check refuses an address that nobody can have.
func (a Address) check() error {
	bad := func(format string, args ...any) error {
		return &AddressError{Input: a.String(), Problem: fmt.Sprintf(format, args...)}
	}
	switch {
	case !a.Addr.IsValid() || a.Addr.IsUnspecified() || a.Addr.IsMulticast() || a.Addr == broadcast:
		return bad("the IP address must be that of one host")
	case a.Addr.Is4In6() || a.Addr.Zone() != "":
		return bad("the IP address must not be IPv4-mapped or have a zone")
	case a.QPN == 0 || a.QPN >= roce.QPNMulticast:
		return bad("qpn must be 0x000001 to 0xfffffe")
	case a.PSN > roce.PSNMask:
		return bad("psn must be at most 0xffffff")
	case a.MaxReads < 0 || a.MaxReads > qp.MaxReads:
		return bad("reads must be 0 to %d", qp.MaxReads)
	}
	if _, err := roce.PathMTUFor(a.MTU); err != nil {
		return bad("mtu must be 256, 512, 1024, 2048 or 4096")
	}
	return nil
}

// String returns the text form, which [ParseAddress] reads.
func (a Address) String() string {
	s := fmt.Sprintf("%s,%v,qpn=0x%06x,psn=0x%06x,mtu=%d,reads=%d", addressTag, a.Addr, uint32(a.QPN), uint32(a.PSN), a.MTU, a.MaxReads)
	if a.Hixl {
		s += ",hixl"
	}
	return s
}

// ParseAddress reads the text form exactly as String writes it. The error is an
// *[AddressError].
func ParseAddress(s string) (Address, error) {
	a, problem := parseAddress(s)
	if problem != "" {
		return Address{}, &AddressError{Input: s, Problem: problem}
	}
	if err := a.check(); err != nil {
		return Address{}, err
	}
	if a.String() != s {
		return Address{}, &AddressError{Input: s, Problem: fmt.Sprintf("not in the one way to write it, which is %q", a.String())}
	}
	return a, nil
}

func parseAddress(s string) (a Address, problem string) {
	parts := strings.Split(s, ",")
	if parts[0] != addressTag {
		return a, fmt.Sprintf("it must begin with %q, the version", addressTag)
	}
	a.Hixl = len(parts) == 7 && parts[6] == "hixl"
	if len(parts) != 6 && !a.Hixl {
		return a, fmt.Sprintf("%d fields instead of 6, or 7 with \"hixl\" as the last", len(parts))
	}
	addr, err := netip.ParseAddr(parts[1])
	if err != nil {
		return a, "the second field is no IP address"
	}
	a.Addr = addr
	var qpn, psn, mtu, reads uint64
	for i, f := range [...]struct {
		name string
		base int
		v    *uint64
	}{{"qpn=0x", 16, &qpn}, {"psn=0x", 16, &psn}, {"mtu=", 10, &mtu}, {"reads=", 10, &reads}} {
		digits, ok := strings.CutPrefix(parts[2+i], f.name)
		if !ok {
			return a, fmt.Sprintf("field %d must begin with %q", 3+i, f.name)
		}
		if *f.v, err = strconv.ParseUint(digits, f.base, 24); err != nil {
			return a, fmt.Sprintf("field %d has no number below 2^24 after %q", 3+i, f.name)
		}
	}
	a.QPN, a.PSN, a.MTU, a.MaxReads = QPN(qpn), PSN(psn), int(mtu), int(reads)
	return a, ""
}

// MarshalText returns the text form.
func (a Address) MarshalText() ([]byte, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	return []byte(a.String()), nil
}

// UnmarshalText reads the text form.
func (a *Address) UnmarshalText(b []byte) (err error) {
	*a, err = ParseAddress(string(b))
	return err
}

// The binary form: version, flags, MTU code, reads, QPN and PSN of three bytes
// each, and the 4 or 16 bytes of the IP address.
const (
	binaryVersion = 1
	binaryHixl    = 1
	binaryHead    = 10
)

// MarshalBinary returns the binary form, 14 or 26 bytes.
func (a Address) MarshalBinary() ([]byte, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	mtu, _ := roce.PathMTUFor(a.MTU) // checked
	flags := byte(0)
	if a.Hixl {
		flags |= binaryHixl
	}
	b := []byte{
		binaryVersion, flags, byte(mtu), byte(a.MaxReads),
		byte(a.QPN >> 16), byte(a.QPN >> 8), byte(a.QPN), byte(a.PSN >> 16), byte(a.PSN >> 8), byte(a.PSN),
	}
	return append(b, a.Addr.AsSlice()...), nil
}

// UnmarshalBinary reads the binary form. The error is an *[AddressError].
func (a *Address) UnmarshalBinary(b []byte) error {
	bad := func(problem string) error {
		return &AddressError{Input: fmt.Sprintf("%x", b[:min(len(b), 64)]), Problem: problem}
	}
	if len(b) != binaryHead+4 && len(b) != binaryHead+16 {
		return bad(fmt.Sprintf("%d bytes instead of 14 or 26", len(b)))
	}
	if b[0] != binaryVersion {
		return bad(fmt.Sprintf("version %d instead of 1", b[0]))
	}
	if b[1]&^binaryHixl != 0 {
		return bad(fmt.Sprintf("unknown flags %#x", b[1]))
	}
	addr, _ := netip.AddrFromSlice(b[binaryHead:])
	got := Address{
		Addr: addr, QPN: QPN(b[4])<<16 | QPN(b[5])<<8 | QPN(b[6]), PSN: PSN(b[7])<<16 | PSN(b[8])<<8 | PSN(b[9]),
		MTU: roce.PathMTU(b[2]).Bytes(), MaxReads: int(b[3]), Hixl: b[1]&binaryHixl != 0,
	}
	if err := got.check(); err != nil {
		return err
	}
	*a = got
	return nil
}
