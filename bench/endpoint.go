package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/gohixl/hixl"
)

// endpoint is one side's NIC and memory: a source, a little longer than the
// region so that every lap can start elsewhere, and a destination.
type endpoint struct {
	nic      *hixl.NIC
	pd       *hixl.PD
	src, dst *hixl.Region
}

// The sides of a run, in errors.
const (
	requesterSide = "requester"
	responderSide = "responder"
)

// onSide says in whose memory a mismatch was found.
func onSide(side string, err error) error {
	var m *MismatchError
	if errors.As(err, &m) && m.Side == "" {
		m.Side = side
	}
	return err
}

// openEndpoint opens a NIC on an address with memory for a region.
func openEndpoint(addr netip.Addr, region int, o nicOptions) (*endpoint, error) {
	nic, err := o.open(addr)
	if err != nil {
		return nil, err
	}
	e := &endpoint{nic: nic, pd: nic.AllocPD()}
	if err := e.alloc(region); err != nil {
		return nil, errors.Join(fmt.Errorf("bench: memory for a region of %s: %w", formatSize(region), err), e.close())
	}
	return e, nil
}

func (e *endpoint) alloc(region int) (err error) {
	const access = hixl.LocalWrite | hixl.RemoteWrite | hixl.RemoteRead | hixl.RemoteAtomic
	if e.src, err = e.pd.Alloc(region+slack, access); err != nil {
		return err
	}
	e.dst, err = e.pd.Alloc(region, access)
	return err
}

func (e *endpoint) close() error { return e.nic.Close() }

// usage is what this process and this NIC have spent.
func (e *endpoint) usage() usage {
	s := e.nic.Stats()
	return usage{CPU: processCPU(), Mallocs: processMallocs(), Retransmits: s.RC.Retransmitted, Causes: causes(&s)}
}

// prepare fills, clears and sets what a round needs.
func (e *endpoint) prepare(p *preparation) {
	if p.Fill {
		fill(e.src.Bytes(), p.Key, 0)
	}
	if p.Clear {
		clear(e.dst.Bytes())
	}
	for i := range p.Counters {
		binary.NativeEndian.PutUint64(e.dst.Bytes()[i*slotAlign:], counterBase(p.Key, i))
	}
}

// counter reads counter i of the destination.
func (e *endpoint) counter(i int) uint64 {
	return binary.NativeEndian.Uint64(e.dst.Bytes()[i*slotAlign:])
}

func memoryOf(r *hixl.Region) remoteMemory { return remoteMemory{Addr: r.Addr(), RKey: r.RKey()} }

// counterBase is where counter i starts in a round.
func counterBase(key uint64, i int) uint64 { return word(key, 1<<40+uint64(i)) }
