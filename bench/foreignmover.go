package bench

import (
	"context"
	"os"
	"time"
)

// foreignMover runs a program for each timed part. It verifies nothing: the
// bytes are the program's own.
type foreignMover struct {
	nets    *isolation
	program *program
	size    int
	cpu     time.Duration // of all runs so far
	// Messages a second seen last, 0 before.
	rate, latencyRate float64
	last              figures
}

func (m *foreignMover) open(context.Context) error            { return nil }
func (m *foreignMover) prepare(context.Context, uint64) error { return nil }
func (m *foreignMover) verify(context.Context, uint64) error  { return nil }
func (m *foreignMover) close(context.Context) error           { return nil }

// warms says that the program warms up by itself.
func (m *foreignMover) warms() bool { return true }

func (m *foreignMover) walks() int { return m.size }

// Limits of a run, in messages, and how many go first to learn the rate.
const (
	minForeign   = 20
	maxForeign   = 20_000_000
	firstForeign = 2000
	firstBytes   = 64 << 20
)

// messages is how many take about d at a rate of messages a second, and least
// anyway; at an unknown rate, few.
func (m *foreignMover) messages(d time.Duration, rate float64, least uint64) uint64 {
	least = max(least, minForeign)
	if rate == 0 {
		return max(least, uint64(min(firstForeign, firstBytes/m.size)))
	}
	return max(least, uint64(min(maxForeign, rate*d.Seconds())))
}

func (m *foreignMover) stream(ctx context.Context, d time.Duration, _ uint64) (uint64, time.Duration, error) {
	least := uint64(0)
	if m.program.least != nil {
		least = m.program.least(m.size)
	}
	f, err := m.timed(ctx, m.program.client, d, &m.rate, least)
	m.last = f
	return f.messages, f.elapsed, err
}

// pingPong records one latency, there and back: all that programs tell.
func (m *foreignMover) pingPong(ctx context.Context, d time.Duration, _ uint64, h histogram) error {
	f, p := m.last, m.program
	if p.latency != nil {
		var err error
		if f, err = m.timed(ctx, p.latency, d, &m.latencyRate, 0); err != nil {
			return err
		}
	}
	if f.oneWay > 0 {
		h.add(2 * f.oneWay)
	}
	return nil
}

func (m *foreignMover) usage(context.Context) (usage, error) { return usage{CPU: m.cpu}, nil }

// timed runs the program for about d, or for so many messages when that takes longer.
// The first time it learns the rate before, unless that took as long.
func (m *foreignMover) timed(ctx context.Context, client func(int, uint64) []string, d time.Duration, rate *float64, least uint64) (f figures, err error) {
	for first := *rate == 0; ; first = false {
		if f, err = m.run(ctx, client, m.messages(d, *rate, least)); err != nil {
			return f, err
		}
		*rate = per(float64(f.messages), f.elapsed.Seconds())
		if !first || f.elapsed >= d {
			return f, nil
		}
	}
}

// run runs server and client once, for n messages.
func (m *foreignMover) run(ctx context.Context, client func(int, uint64) []string, n uint64) (figures, error) {
	net, err := m.nets.open()
	if err != nil {
		return figures{}, err
	}
	out, cpu, err := net.run(ctx, append(os.Environ(), m.program.env...), m.program.file, m.program.server(m.size, n), client(m.size, n))
	m.cpu += cpu
	if err != nil {
		return figures{}, &ForeignError{m.program.file, err}
	}
	f, err := m.program.parse(out, m.size, n)
	if err != nil {
		return f, &ForeignError{m.program.file, err}
	}
	return f, nil
}

// isolation makes the network namespace of a session's foreign programs when
// the first of them runs.
type isolation struct {
	net    *ownNet
	server []int // cores of servers; none: as clients, those of this process
}

func (i *isolation) open() (_ *ownNet, err error) {
	if i.net == nil {
		i.net, err = openOwnNet(i.server)
	}
	return i.net, err
}

func (i *isolation) close() {
	if i.net != nil {
		i.net.close()
	}
}
