//go:build !linux

package veth

// Pair is two namespaces; there are none on this system.
type Pair struct{}

// New fails with ErrUnsupported.
func New(Config) (*Pair, error) { return nil, ErrUnsupported }

// Do fails with ErrUnsupported.
func (*Pair) Do(int, func() error) error { return ErrUnsupported }

// Close does nothing.
func (*Pair) Close() error { return nil }
