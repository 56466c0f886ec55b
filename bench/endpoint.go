package bench

import (
	"context"
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
	source   MemorySource // nil for host memory
	src, dst *buffer
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

// openEndpoint opens a NIC on an address with memory of a kind for a region.
func openEndpoint(addr netip.Addr, memory string, region int, o nicOptions) (*endpoint, error) {
	source, err := openMemory(memory)
	if err != nil {
		return nil, err
	}
	nic, err := o.open(addr)
	if err != nil {
		if source != nil {
			err = errors.Join(err, source.Close())
		}
		return nil, err
	}
	e := &endpoint{nic: nic, pd: nic.AllocPD(), source: source}
	if err := e.alloc(region); err != nil {
		return nil, errors.Join(fmt.Errorf("bench: memory for a region of %s: %w", formatSize(region), err), e.close())
	}
	return e, nil
}

func (e *endpoint) alloc(region int) (err error) {
	if e.src, err = newBuffer(e.pd, e.source, region+slack); err != nil {
		return err
	}
	e.dst, err = newBuffer(e.pd, e.source, region)
	return err
}

// close ends the NIC, then gives back what its regions were over.
func (e *endpoint) close() error {
	errs := []error{e.nic.Close()}
	for _, b := range []*buffer{e.src, e.dst} {
		if b != nil && b.free != nil {
			errs = append(errs, b.Deregister(context.Background()), b.free())
		}
	}
	if e.source != nil {
		errs = append(errs, e.source.Close())
	}
	return errors.Join(errs...)
}

// describe says what memory the endpoint has, "" for the host's.
func (e *endpoint) describe() string {
	if e.source == nil {
		return ""
	}
	return e.source.Describe()
}

// usage is what this process and this NIC have spent.
func (e *endpoint) usage() usage {
	s := e.nic.Stats()
	return usage{
		CPU: processCPU(), Mallocs: processMallocs(), Retransmits: s.RC.Retransmitted,
		Packets: s.TxPackets, Trains: s.TxTrains, Causes: causes(&s), Strain: processStrain(),
	}
}

// prepare fills, clears and sets what a round needs.
func (e *endpoint) prepare(p *preparation) error {
	if p.Fill {
		fill(e.src.Bytes(), p.Key, 0)
		if err := e.src.push(); err != nil {
			return err
		}
	}
	if p.Clear {
		clear(e.dst.Bytes())
	}
	for i := range p.Counters {
		binary.NativeEndian.PutUint64(e.dst.Bytes()[i*slotAlign:], counterBase(p.Key, i))
	}
	if p.Clear || p.Counters > 0 {
		return e.dst.push()
	}
	return nil
}

// counter reads counter i of the destination.
func (e *endpoint) counter(i int) (uint64, error) { return e.dst.word(i * slotAlign) }

func memoryOf(r *buffer) remoteMemory { return remoteMemory{Addr: r.Addr(), RKey: r.RKey()} }

// counterBase is where counter i starts in a round.
func counterBase(key uint64, i int) uint64 { return word(key, 1<<40+uint64(i)) }
