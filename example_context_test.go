package hixl_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net/netip"
	"time"

	"github.com/gohixl/hixl"
)

// The examples run two contexts in one process; apart they would be two programs.
const (
	serverAddr = "127.88.60.1"
	workerAddr = "127.88.60.2"
)

// must ends an example that cannot go on.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func openAt(addr string) *hixl.Context {
	return must(hixl.Open(hixl.Config{Address: netip.MustParseAddr(addr)}))
}

const shared = hixl.LocalWrite | hixl.RemoteRead | hixl.RemoteWrite | hixl.RemoteAtomic

// A worker pulls parameters with a read.
func ExamplePeer_Read() {
	ctx := context.Background()
	server, worker := openAt(serverAddr), openAt(workerAddr)
	defer server.Close()
	defer worker.Close()

	weights := must(server.Alloc(1<<20, shared))
	copy(weights.Bytes(), "version 1 of the weights")
	check(server.Publish("weights", weights))
	must(server.Listen(ctx, ":18515"))

	peer := must(worker.Dial(ctx, serverAddr+":18515"))
	remote := must(peer.Region(ctx, "weights"))
	local := must(worker.Alloc(1<<20, hixl.LocalWrite))
	check(peer.Read(ctx, hixl.Desc{Local: local, Remote: remote, Len: remote.Len()}))
	fmt.Println(string(local.Bytes()[:24]))
	// Output: version 1 of the weights
}

// A worker pushes gradients with a write with immediate: when the server sees the
// 32 bits, the bytes are there.
func ExamplePeer_WriteImm() {
	ctx := context.Background()
	server, worker := openAt(serverAddr), openAt(workerAddr)
	defer server.Close()
	defer worker.Close()

	gradients := must(server.Alloc(1<<20, shared))
	check(server.Publish("gradients", gradients))
	listener := must(server.Listen(ctx, ":18515"))

	peer := must(worker.Dial(ctx, serverAddr+":18515"))
	remote := must(peer.Region(ctx, "gradients"))
	local := must(worker.Alloc(4096, 0))
	copy(local.Bytes(), "gradients of step 7")
	check(peer.WriteImm(ctx, hixl.Desc{Local: local, Remote: remote, Len: 4096}, 7))

	from := must(listener.Accept(ctx))
	n := must(from.Notifications(ctx))
	fmt.Println("tensor", n.Imm, "holds", string(gradients.Bytes()[:19]))
	// Output: tensor 7 holds gradients of step 7
}

// A KV cache of 500 blocks is moved by one call, and the peer is told by name when
// all of it is there.
func ExamplePeer_Start() {
	ctx := context.Background()
	decode, prefill := openAt(serverAddr), openAt(workerAddr)
	defer decode.Close()
	defer prefill.Close()

	const block, blocks = 2048, 500
	cache := must(decode.Alloc(block*blocks, shared))
	check(decode.Publish("kv", cache))
	listener := must(decode.Listen(ctx, ":18515"))

	peer := must(prefill.Dial(ctx, serverAddr+":18515"))
	remote := must(peer.Region(ctx, "kv"))
	local := must(prefill.Alloc(block*blocks, 0))
	var list []hixl.Desc
	for i := range uint64(blocks) { // wherever the other side has room for them
		list = append(list, hixl.Desc{Local: local, LocalOff: i * block, Remote: remote, RemoteOff: (blocks - 1 - i) * block, Len: block})
	}
	h := must(peer.Start(&hixl.Transfer{Op: hixl.Write, Descs: list, Notify: &hixl.Notification{Name: "sequence 42"}}))
	check(h.Wait(ctx))
	fmt.Println(h.Arrived(), "bytes")

	from := must(listener.Accept(ctx))
	fmt.Println(must(from.Notifications(ctx)).Name)
	// Output:
	// 1024000 bytes
	// sequence 42
}

// A lock on one word: whoever replaces 0 by its own number has it.
func ExamplePeer_CompareSwap() {
	ctx := context.Background()
	server, worker := openAt(serverAddr), openAt(workerAddr)
	defer server.Close()
	defer worker.Close()

	locks := must(server.Alloc(4096, shared))
	check(server.Publish("locks", locks))
	must(server.Listen(ctx, ":18515"))

	peer := must(worker.Dial(ctx, serverAddr+":18515"))
	remote := must(peer.Region(ctx, "locks"))
	const me = 17
	fmt.Println(must(peer.CompareSwap(ctx, remote, 0, 0, me)) == 0)
	fmt.Println(must(peer.CompareSwap(ctx, remote, 0, 0, 18)) == 0, "held by", binary.NativeEndian.Uint64(locks.Bytes()))
	fmt.Println(must(peer.CompareSwap(ctx, remote, 0, me, 0)) == me)
	// Output:
	// true
	// false held by 17
	// true
}

// Many small writes are gathered; Flush tells that they are all there.
func ExamplePeer_Push() {
	ctx := context.Background()
	server, worker := openAt(serverAddr), must(hixl.Open(hixl.Config{
		Address: netip.MustParseAddr(workerAddr),
		Peers:   hixl.PeerConfig{Coalesce: hixl.CoalesceConfig{Delay: time.Second}}, // there is no hurry
	}))
	defer server.Close()
	defer worker.Close()

	table := must(server.Alloc(64<<10, shared))
	check(server.Publish("table", table))
	must(server.Listen(ctx, ":18515"))

	peer := must(worker.Dial(ctx, serverAddr+":18515"))
	remote := must(peer.Region(ctx, "table"))
	for i := range uint64(1000) {
		row := hixl.Word(i * i)
		check(peer.Push(hixl.Desc{Inline: row[:], Remote: remote, RemoteOff: i * 8}))
	}
	check(peer.Flush(ctx))
	fmt.Println(binary.NativeEndian.Uint64(table.Bytes()[999*8:]), worker.Stats().CoalescedPosts < 100)
	// Output: 998001 true
}

// A server that restarts is another incarnation: what was looked up before is
// refused, then looked up again.
func ExampleRemoteRegion_Refresh() {
	ctx := context.Background()
	worker := openAt(workerAddr)
	defer worker.Close()
	start := func() *hixl.Context {
		server := openAt(serverAddr)
		check(server.Publish("weights", must(server.Alloc(4096, shared))))
		must(server.Listen(ctx, ":18515"))
		return server
	}
	server := start()
	peer := must(worker.Dial(ctx, serverAddr+":18515"))
	remote := must(peer.Region(ctx, "weights"))
	check(peer.Write(ctx, hixl.Desc{Inline: []byte("hello"), Remote: remote}))

	check(server.Close())
	for peer.State() == hixl.PeerUp {
		time.Sleep(time.Millisecond)
	}
	server = start()
	defer server.Close()
	check(peer.Connect(ctx))
	err := peer.Write(ctx, hixl.Desc{Inline: []byte("hello"), Remote: remote})
	fmt.Println(err != nil, remote.Stale())
	check(remote.Refresh(ctx))
	check(peer.Write(ctx, hixl.Desc{Inline: []byte("hello"), Remote: remote}))
	fmt.Println("connection", peer.Generation())
	// Output:
	// true true
	// connection 2
}

// Computation and communication overlap, each in its own order: while one block is
// on its way, the next is computed. The trace tells how much of the way was hidden.
func ExampleStream() {
	ctx := context.Background()
	server, worker := openAt(serverAddr), openAt(workerAddr)
	defer server.Close()
	defer worker.Close()

	activations := must(server.Alloc(1<<20, shared))
	check(server.Publish("activations", activations))
	must(server.Listen(ctx, ":18515"))

	peer := must(worker.Dial(ctx, serverAddr+":18515"))
	remote := must(peer.Region(ctx, "activations"))
	local := must(worker.Alloc(1<<20, 0))
	trace := worker.StartTrace(1000)
	compute, copies := worker.NewStream(hixl.StreamConfig{}), worker.NewStream(hixl.StreamConfig{})
	const block = 128 << 10
	for i := range uint64(8) {
		must(compute.Call(func() error {
			local.Bytes()[i*block] = byte(i)
			return nil
		}))
		check(copies.Wait(compute.Record())) // the block is there
		must(copies.Transfer(peer, &hixl.Transfer{Op: hixl.Write, Descs: []hixl.Desc{{Local: local, LocalOff: i * block, Remote: remote, RemoteOff: i * block, Len: block}}}))
	}
	check(copies.Synchronize(ctx))
	fmt.Println(activations.Bytes()[7*block], trace.Report().Transfers)
	// Output: 7 8
}

// Where the time goes: transfers, what is computed meanwhile, and a file that Chrome's
// trace viewer and Perfetto show.
func ExampleTrace() {
	ctx := context.Background()
	server, worker := openAt(serverAddr), openAt(workerAddr)
	defer server.Close()
	defer worker.Close()
	check(server.Publish("weights", must(server.Alloc(1<<20, shared))))
	must(server.Listen(ctx, ":18515"))
	peer := must(worker.Dial(ctx, serverAddr+":18515"))
	remote := must(peer.Region(ctx, "weights"))
	local := must(worker.Alloc(1<<20, hixl.LocalWrite))

	trace := worker.StartTrace(1000)
	h := must(peer.ReadAsync(hixl.Desc{Local: local, Remote: remote, Len: 1 << 20}))
	end := trace.Compute("forward pass")
	check(h.Wait(ctx))
	end()
	worker.StopTrace()
	report := trace.Report()
	fmt.Println(report.Transfers, "transfer of", report.Bytes, "bytes; some was hidden:", report.Overlap() > 0)
	check(trace.WriteJSON(io.Discard)) // or a file
	// Output: 1 transfer of 1048576 bytes; some was hidden: true
}

// Several queue pairs join two contexts; whoever dials the same address shares them,
// and a peer that nobody uses makes room when there are many.
func ExampleContext_Dial() {
	ctx := context.Background()
	server := openAt(serverAddr)
	defer server.Close()
	worker := must(hixl.Open(hixl.Config{
		Address: netip.MustParseAddr(workerAddr),
		Peers:   hixl.PeerConfig{QPs: 4, HighWater: 1000, IdleAfter: time.Minute},
	}))
	defer worker.Close()
	must(server.Listen(ctx, ":18515"))

	peer := must(worker.Dial(ctx, serverAddr+":18515"))
	same := must(worker.Dial(ctx, serverAddr+":18515"))
	fmt.Println(peer == same, peer.State(), worker.Stats().Connected)
	// Output: true up 1
}

// A transfer that is given up: when Cancel says nil, no byte of it lands any more, and
// the memory is good for something else.
func ExampleHandle_Cancel() {
	ctx := context.Background()
	server, worker := openAt(serverAddr), openAt(workerAddr)
	defer server.Close()
	defer worker.Close()
	check(server.Publish("kv", must(server.Alloc(16<<20, shared))))
	must(server.Listen(ctx, ":18515"))
	peer := must(worker.Dial(ctx, serverAddr+":18515"))
	remote := must(peer.Region(ctx, "kv"))
	local := must(worker.Alloc(16<<20, hixl.LocalWrite))

	h := must(peer.ReadAsync(hixl.Desc{Local: local, Remote: remote, Len: remote.Len()}))
	soon, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := h.Cancel(soon)
	if errors.Is(err, hixl.ErrUnfenced) {
		err = h.WaitFenced(ctx) // the peer is silent; do not touch the memory yet
	}
	fmt.Println(err, h.Fenced())
	// Output: <nil> true
}
