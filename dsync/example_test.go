package dsync_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/gohixl/hixl"
	"github.com/gohixl/hixl/dsync"
)

// join opens a home and a user of it, as two processes would, and returns the home's
// region, and what the user sees of it.
func join(ctx context.Context, homeAddr, userAddr string) (mem *hixl.Region, remote *hixl.RemoteRegion, end func()) {
	home, err := hixl.Open(hixl.Config{Address: netip.MustParseAddr(homeAddr)})
	check(err)
	user, err := hixl.Open(hixl.Config{Address: netip.MustParseAddr(userAddr)})
	check(err)
	l, err := home.Listen(ctx, ":18515")
	check(err)
	mem, err = home.Alloc(4096, hixl.LocalWrite|hixl.RemoteRead|hixl.RemoteWrite|hixl.RemoteAtomic)
	check(err)
	check(home.Publish("sync", mem))
	peer, err := user.Dial(ctx, l.Addr().String())
	check(err)
	remote, err = peer.Region(ctx, "sync")
	check(err)
	return mem, remote, func() {
		check(user.Close())
		check(home.Close())
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A lock that its holder gives back.
func ExampleLock() {
	ctx := context.Background()
	home, remote, end := join(ctx, "127.88.64.1", "127.88.64.2")
	defer end()
	check(dsync.InitLock(home, 0, 30*time.Second)) // at the home, once

	lock, err := dsync.OpenLock(ctx, remote, 0)
	check(err)
	lease, err := lock.Acquire(ctx)
	check(err)
	fmt.Println("token", lease.Token(), lease.Held())
	check(lease.Release(ctx))

	lease, err = lock.Acquire(ctx)
	check(err)
	fmt.Println("token", lease.Token()) // goes with what is written meanwhile
	check(lease.Release(ctx))
	// Output:
	// token 1 true
	// token 3
}

// A lock whose holder does more than one lease's work, and renews beside it.
func ExampleLease_Keep() {
	ctx := context.Background()
	home, remote, end := join(ctx, "127.88.65.1", "127.88.65.2")
	defer end()
	check(dsync.InitLock(home, 0, time.Minute))
	lock, err := dsync.OpenLock(ctx, remote, 0)
	check(err)

	lease, err := lock.Acquire(ctx)
	check(err)
	work, stop := context.WithCancelCause(ctx)
	kept := make(chan error, 1)
	go func() {
		err := lease.Keep(work)
		stop(err) // lost: the work ends
		kept <- err
	}()
	fmt.Println("at work:", work.Err() == nil)
	stop(nil)
	fmt.Println(<-kept)
	check(lease.Release(ctx))
	// Output:
	// at work: true
	// <nil>
}

// A counter gives each caller a number of its own.
func ExampleCounter() {
	ctx := context.Background()
	home, remote, end := join(ctx, "127.88.66.1", "127.88.66.2")
	defer end()
	check(dsync.InitCounter(home, 64, 100))

	counter, err := dsync.OpenCounter(ctx, remote, 64)
	check(err)
	ticket, err := counter.Add(ctx, 1)
	check(err)
	total, err := counter.Load(ctx)
	check(err)
	fmt.Println(ticket, total)
	// Output: 100 101
}

// A value that many read while one writes it.
func ExampleValueWriter() {
	ctx := context.Background()
	home, remote, end := join(ctx, "127.88.69.1", "127.88.69.2")
	defer end()
	check(dsync.InitValue(home, 0, 1000, 1, []byte("nothing yet")))

	writer, err := dsync.OpenValueWriter(ctx, remote, 0, 0)
	check(err)
	reader, err := dsync.OpenValueReader(ctx, remote, 0)
	check(err)
	_, err = writer.Store(ctx, 0, []byte("step 1"))
	check(err)
	data, version, err := reader.Load(ctx)
	check(err)
	fmt.Printf("%s, version %d\n", data, version)
	// Output: step 1, version 1
}

// Two parties who go from step to step together.
func ExampleBarrier() {
	ctx := context.Background()
	home, remote, end := join(ctx, "127.88.76.1", "127.88.76.2")
	defer end()
	check(dsync.InitBarrier(home, 0, 2, time.Minute))

	done := make(chan uint64)
	for number := range uint64(2) { // each a process of its own elsewhere
		go func() {
			party, err := dsync.OpenBarrier(ctx, remote, 0, number)
			check(err)
			_, err = party.Wait(ctx)
			check(err)
			round, err := party.Wait(ctx)
			check(err)
			done <- round
		}()
	}
	fmt.Println(<-done, <-done)
	// Output: 2 2
}

// Records from one process to another, which takes them at its own pace.
func ExampleRingProducer() {
	ctx := context.Background()
	home, remote, end := join(ctx, "127.88.77.1", "127.88.77.2")
	defer end()
	check(dsync.InitRing(home, 0, 16, 100))

	consumer, err := dsync.OpenRingConsumer(ctx, remote, 0)
	check(err)
	producer, err := dsync.OpenRingProducer(ctx, remote, 0)
	check(err)
	for _, record := range []string{"first", "second"} {
		_, err = producer.Send(ctx, []byte(record))
		check(err)
	}
	for range 2 {
		record, seq, err := consumer.Recv(ctx)
		check(err)
		fmt.Printf("%d: %s\n", seq, record)
	}
	check(consumer.Commit(ctx)) // they are dealt with, whoever is next
	// Output:
	// 0: first
	// 1: second
}
