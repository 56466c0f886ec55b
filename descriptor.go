package hixl

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/gohixl/hixl/internal/peerwire"
	"github.com/gohixl/hixl/qp"
)

// ErrDescriptor is what errors of reading a [Descriptor] unwrap to.
var ErrDescriptor = errors.New("hixl: bad region descriptor")

// Descriptor says what a peer needs to reach a region. It names the incarnation
// of the region's context, so a peer that has restarted refuses it, and so does
// this package before it asks. Whoever has it can use the region.
type Descriptor struct {
	// Context is the incarnation whose region it is, ID the region's number there.
	Context ContextID
	ID      uint64
	// Generation is greater for each region that the context publishes, 0 for one
	// without name.
	Generation uint32
	// RKey, Addr, Len and Access are the region's.
	RKey      uint32
	Addr, Len uint64
	Access    Access
}

const (
	descriptorTag     = "hixl-region1:"
	descriptorVersion = 1
	descriptorLen     = 1 + 16 + 8 + 4 + 4 + 8 + 8 + 4
)

// MarshalBinary returns the binary form, 53 bytes: version, Context, ID,
// Generation, RKey, Addr, Len, Access, big endian.
func (d Descriptor) MarshalBinary() ([]byte, error) {
	b := append(make([]byte, 0, descriptorLen), descriptorVersion)
	b = append(b, d.Context[:]...)
	b = binary.BigEndian.AppendUint64(b, d.ID)
	b = binary.BigEndian.AppendUint32(b, d.Generation)
	b = binary.BigEndian.AppendUint32(b, d.RKey)
	b = binary.BigEndian.AppendUint64(b, d.Addr)
	b = binary.BigEndian.AppendUint64(b, d.Len)
	return binary.BigEndian.AppendUint32(b, uint32(d.Access)), nil
}

// UnmarshalBinary reads the binary form. The error unwraps to [ErrDescriptor].
func (d *Descriptor) UnmarshalBinary(b []byte) error {
	if len(b) != descriptorLen {
		return fmt.Errorf("%w: %d bytes instead of %d", ErrDescriptor, len(b), descriptorLen)
	}
	if b[0] != descriptorVersion {
		return fmt.Errorf("%w: version %d instead of %d", ErrDescriptor, b[0], descriptorVersion)
	}
	got := Descriptor{
		Context: ContextID(b[1:17]), ID: binary.BigEndian.Uint64(b[17:]), Generation: binary.BigEndian.Uint32(b[25:]),
		RKey: binary.BigEndian.Uint32(b[29:]), Addr: binary.BigEndian.Uint64(b[33:]), Len: binary.BigEndian.Uint64(b[41:]),
		Access: Access(binary.BigEndian.Uint32(b[49:])),
	}
	if got.Addr+got.Len < got.Addr {
		return fmt.Errorf("%w: %d bytes from %#x go beyond the end of addresses", ErrDescriptor, got.Len, got.Addr)
	}
	*d = got
	return nil
}

// MarshalText returns the text form: a tag and the binary form in hexadecimal.
func (d Descriptor) MarshalText() ([]byte, error) {
	b, err := d.MarshalBinary()
	return hex.AppendEncode([]byte(descriptorTag), b), err
}

// UnmarshalText reads the text form. The error unwraps to [ErrDescriptor].
func (d *Descriptor) UnmarshalText(b []byte) error {
	if len(b) != len(descriptorTag)+2*descriptorLen || string(b[:len(descriptorTag)]) != descriptorTag {
		return fmt.Errorf("%w: it is %q and %d digits", ErrDescriptor, descriptorTag, 2*descriptorLen)
	}
	bin, err := hex.DecodeString(string(b[len(descriptorTag):]))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDescriptor, err)
	}
	return d.UnmarshalBinary(bin)
}

// String returns the text form.
func (d Descriptor) String() string {
	b, _ := d.MarshalText() // never fails
	return string(b)
}

// Describe returns what a peer of this context needs to reach a region of it.
func (c *Context) Describe(r *Region) Descriptor {
	return Descriptor{Context: c.id, ID: r.id, RKey: r.RKey(), Addr: r.Addr(), Len: r.Len(), Access: r.Access() & qp.RemoteAccess}
}

// wire returns what a message carries of d.
func (d *Descriptor) wire() peerwire.Region {
	return peerwire.Region{ID: d.ID, Generation: d.Generation, RKey: d.RKey, Addr: d.Addr, Len: d.Len, Access: uint32(d.Access)}
}

// descriptorOf is the reverse.
func descriptorOf(id ContextID, r *peerwire.Region) Descriptor {
	return Descriptor{Context: id, ID: r.ID, Generation: r.Generation, RKey: r.RKey, Addr: r.Addr, Len: r.Len, Access: Access(r.Access)}
}
