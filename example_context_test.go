package hixl_test

import (
	"context"
	"encoding/binary"
	"fmt"
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
