package bench

import (
	"context"
	"os"
	"time"
)

// shmMover moves messages through a ring in memory shared with the peer.
type shmMover struct {
	s     *session
	size  int
	lay   layout
	walk  walker
	first uint64 // messages before this round
	mem   *sharedMemory
	ring  *ring
}

func (m *shmMover) open(ctx context.Context) (err error) {
	if m.lay, err = newLayout(len(m.s.ep.dst.Bytes()), m.size, 1); err != nil {
		return err
	}
	m.walk = m.lay.walk(0)
	if m.mem, err = shareMemory(ringSize); err != nil {
		return err
	}
	m.ring = newRing(m.mem.mem)
	if _, err = m.ask(ctx, &request{Do: doShmOpen, Shm: &shmSpec{PID: os.Getpid(), FD: m.mem.fd()}}); err != nil {
		m.mem.close()
	}
	return err
}

// ask asks the peer about this size's receiver.
func (m *shmMover) ask(ctx context.Context, req *request) (*response, error) {
	if req.Shm == nil {
		req.Shm = &shmSpec{}
	}
	req.Shm.Size = m.size
	return m.s.call(ctx, req)
}

func (m *shmMover) prepare(ctx context.Context, key uint64) error {
	m.first = m.walk.n
	if err := m.s.ep.prepare(&preparation{Key: key, Fill: true}); err != nil {
		return err
	}
	_, err := m.s.call(ctx, &request{Do: doPrepare, Prepare: &preparation{Key: key, Clear: true}})
	return err
}

// running runs f while the peer takes messages, and waits until it has them all.
func (m *shmMover) running(ctx context.Context, f func() error) error {
	defer context.AfterFunc(ctx, func() { m.ring.quit.Store(true) })()
	m.ring.ended.Store(0)
	if _, err := m.ask(ctx, &request{Do: doShmStart}); err != nil {
		return err
	}
	err := f()
	m.ring.ended.Store(1)
	if err != nil {
		return explain(ctx, err)
	}
	_, err = m.ask(ctx, &request{Do: doShmTake, Count: m.walk.n})
	return err
}

func (m *shmMover) stream(ctx context.Context, d time.Duration, least uint64) (n uint64, elapsed time.Duration, err error) {
	err = m.running(ctx, func() error {
		every := uint64(max(1, (64<<10)/m.size))
		start := time.Now()
		for ; n < least || n%every != 0 || time.Since(start) < d; n++ {
			if err := m.send(); err != nil {
				return err
			}
		}
		err := m.ring.drained()
		elapsed = time.Since(start)
		return err
	})
	return n, elapsed, err
}

// send writes the next message.
func (m *shmMover) send() error {
	_, src := m.walk.next()
	return m.ring.put(m.s.ep.src.Bytes()[src : src+m.size])
}

// pingPong waits after each message until the peer has taken it, which is its
// answer.
func (m *shmMover) pingPong(ctx context.Context, d time.Duration, least uint64, h histogram) error {
	return m.running(ctx, func() error {
		before := time.Now()
		end := before.Add(d)
		for n := uint64(0); n < least || before.Before(end); n++ {
			if err := m.send(); err != nil {
				return err
			}
			if err := m.ring.drained(); err != nil {
				return err
			}
			now := time.Now()
			h.add(now.Sub(before))
			before = now
		}
		return nil
	})
}

func (m *shmMover) usage(ctx context.Context) (usage, error) { return m.s.usage(ctx) }

func (m *shmMover) verify(ctx context.Context, key uint64) error {
	_, err := m.ask(ctx, &request{
		Do: doShmDone, Prepare: &preparation{Key: key}, Spans: []span{{From: m.first, To: m.walk.n}},
	})
	return onSide(responderSide, err)
}

func (m *shmMover) walks() int { return m.lay.used() }

func (m *shmMover) close(ctx context.Context) error {
	_, err := m.ask(ctx, &request{Do: doShmClose})
	m.mem.close()
	return err
}
