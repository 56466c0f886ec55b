package roce

import "fmt"

// PathMTU is the largest payload of one packet on a path, as its wire and verbs
// code 1 to 5. It counts payload only, no header (§0).
type PathMTU uint8

// The five path MTUs.
const (
	MTU256  PathMTU = 1
	MTU512  PathMTU = 2
	MTU1024 PathMTU = 3
	MTU2048 PathMTU = 4
	MTU4096 PathMTU = 5
)

// MaxMTU is the payload of the largest path MTU in bytes.
const MaxMTU = 4096

const (
	rxeOverhead = 80 // rdma_rxe: what a port's MTU leaves for headers (§1.12)
	cmOverhead  = 96 // kernel connection manager: 40+8+12+4+28+4 (§1.12)
)

// Valid reports whether m is one of the five codes.
func (m PathMTU) Valid() bool { return m >= MTU256 && m <= MTU4096 }

// Bytes returns the payload size: 256 to 4096, or 0 when m is not valid.
func (m PathMTU) Bytes() int {
	if !m.Valid() {
		return 0
	}
	return 128 << m
}

// String returns the size in bytes, as "1024".
func (m PathMTU) String() string {
	if !m.Valid() {
		return fmt.Sprintf("PathMTU(%d)", uint8(m))
	}
	return fmt.Sprint(m.Bytes())
}

// PathMTUFor returns the code of a payload size in bytes. Any size but 256,
// 512, 1024, 2048 and 4096 is an *[MTUError].
func PathMTUFor(bytes int) (PathMTU, error) {
	for m := MTU256; m <= MTU4096; m++ {
		if m.Bytes() == bytes {
			return m, nil
		}
	}
	return 0, &MTUError{Bytes: bytes}
}

// RxePortMTU returns the path MTU that rdma_rxe reports for a port on a network
// device of the given MTU in bytes: the largest not above it less 80 (§1.12).
// A device too small for any is an *[MTUError].
func RxePortMTU(netdev int) (PathMTU, error) { return largestMTU(netdev, rxeOverhead) }

// CMMTU returns the path MTU to ask for in a connection request over a network
// device of the given MTU in bytes: the largest not above it less 96, which
// leaves room for the largest header set over IPv6 (§1.12). A device too small
// for any is an *[MTUError].
func CMMTU(netdev int) (PathMTU, error) { return largestMTU(netdev, cmOverhead) }

func largestMTU(netdev, overhead int) (PathMTU, error) {
	for m := MTU4096; m >= MTU256; m-- {
		if m.Bytes() <= netdev-overhead {
			return m, nil
		}
	}
	return 0, &MTUError{Bytes: netdev, Overhead: overhead}
}

// MTUError says that no path MTU fits. It unwraps to [ErrMTU].
type MTUError struct {
	Bytes    int // what was given
	Overhead int // 0: Bytes was meant as a path MTU; otherwise as a device's MTU less this
}

func (e *MTUError) Error() string {
	if e.Overhead == 0 {
		return fmt.Sprintf("roce: path MTU %d: give 256, 512, 1024, 2048 or 4096", e.Bytes)
	}
	return fmt.Sprintf("roce: network device MTU %d: at least %d is needed to carry a path MTU of 256; raise it on the device",
		e.Bytes, MTU256.Bytes()+e.Overhead)
}

// Unwrap returns [ErrMTU].
func (e *MTUError) Unwrap() error { return ErrMTU }
