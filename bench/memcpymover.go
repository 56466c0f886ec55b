package bench

import (
	"context"
	"time"
)

// memcpyMover copies messages from source to destination of this process.
type memcpyMover struct {
	ep    *endpoint
	size  int
	lay   layout
	walk  walker
	first uint64 // messages before this round
}

func (m *memcpyMover) open(context.Context) (err error) {
	if m.lay, err = newLayout(len(m.ep.dst.Bytes()), m.size, 1); err == nil {
		m.walk = m.lay.walk(0)
	}
	return err
}

func (m *memcpyMover) prepare(_ context.Context, key uint64) error {
	m.first = m.walk.n
	return m.ep.prepare(&preparation{Key: key, Fill: true, Clear: true})
}

func (m *memcpyMover) stream(_ context.Context, d time.Duration, least uint64) (uint64, time.Duration, error) {
	start := time.Now()
	n := copyMessages(m.ep.dst.Bytes(), m.ep.src.Bytes(), &m.walk, d, least)
	return n, time.Since(start), nil
}

// pingPong measures nothing: a copy has no round trip.
func (m *memcpyMover) pingPong(context.Context, time.Duration, uint64, histogram) error { return nil }

func (m *memcpyMover) usage(context.Context) (usage, error) {
	return usage{CPU: processCPU(), Strain: processStrain()}, nil
}

func (m *memcpyMover) verify(_ context.Context, key uint64) error {
	return onSide(requesterSide, m.lay.verify(m.ep.dst.Bytes(), key, []span{{From: m.first, To: m.walk.n}}))
}

func (m *memcpyMover) walks() int { return m.lay.used() }

func (m *memcpyMover) close(context.Context) error { return nil }
