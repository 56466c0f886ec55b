package bench

import (
	"context"
	"errors"
	"fmt"
)

// shmReceiver is the responder's side of the shm baseline at one size: it takes
// messages from a ring to where they belong in the destination. Between start and
// the ring's end it owns a goroutine, which spins.
type shmReceiver struct {
	lay  layout
	walk walker
	dst  []byte
	mem  *sharedMemory
	ring *ring
	done chan struct{} // closed when the goroutine has left; nil when there is none
	err  error         // why it left; read after done
}

func openShmReceiver(spec *shmSpec, dst []byte) (*shmReceiver, error) {
	lay, err := newLayout(len(dst), spec.Size, 1)
	if err != nil {
		return nil, err
	}
	mem, err := openShared(spec.PID, spec.FD, ringSize)
	if err != nil {
		return nil, err
	}
	r := &shmReceiver{lay: lay, dst: dst, mem: mem, ring: newRing(mem.mem)}
	r.walk = r.lay.walk(0)
	return r, nil
}

// start begins to take messages.
func (r *shmReceiver) start() error {
	if r.done != nil {
		return errors.New("shm baseline: the receiver runs already")
	}
	done := make(chan struct{})
	r.done = done
	go func() {
		defer close(done)
		r.err = r.run()
	}()
	return nil
}

func (r *shmReceiver) run() error {
	for {
		before := r.walk
		dst, _ := r.walk.next()
		ok, err := r.ring.take(r.dst[dst : dst+r.lay.size])
		if err != nil || !ok {
			r.walk = before
			return err
		}
	}
}

// took waits until the ring has ended and all count messages have arrived.
func (r *shmReceiver) took(ctx context.Context, count uint64) error {
	if r.done == nil {
		return errors.New("shm baseline: the receiver does not run")
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return fmt.Errorf("shm baseline: the ring has not ended: %w", context.Cause(ctx))
	}
	r.done = nil
	if r.err == nil && r.walk.n != count {
		return fmt.Errorf("shm baseline: %d messages arrived, %d were sent", r.walk.n, count)
	}
	return r.err
}

func (r *shmReceiver) close() {
	r.ring.quit.Store(true)
	if r.done != nil {
		<-r.done
	}
	r.mem.close()
}
