package hixl_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/gohixl/hixl"
)

// The guide's steps in one program: a test of package archtest holds docs/guide.md to
// these lines.
func Example_guide() {
	ctx := context.Background()

	server, err := hixl.Open(hixl.Config{Address: netip.MustParseAddr("127.88.51.1")})
	check(err)
	defer server.Close()
	listener, err := server.Listen(ctx, ":18515")
	check(err)

	worker, err := hixl.Open(hixl.Config{Address: netip.MustParseAddr("127.88.51.2")})
	check(err)
	defer worker.Close()
	peer, err := worker.Dial(ctx, "127.88.51.1:18515")
	check(err)

	weights, err := server.Alloc(1<<20, hixl.LocalWrite|hixl.RemoteRead|hixl.RemoteWrite)
	check(err)
	err = server.Publish("weights", weights)
	check(err)
	remote, err := peer.Region(ctx, "weights")
	check(err)

	local, err := worker.Alloc(1<<20, hixl.LocalWrite)
	check(err)
	grads, err := worker.Alloc(4096, 0)
	check(err)
	copy(weights.Bytes(), "weights")
	copy(grads.Bytes(), "gradients")
	const step = 7
	err = peer.Read(ctx, hixl.Desc{Local: local, Remote: remote, Len: remote.Len()})
	check(err)
	err = peer.WriteImm(ctx, hixl.Desc{Local: grads, Remote: remote, Len: grads.Len()}, step)
	check(err)
	from, err := listener.Accept(ctx)
	check(err)
	n, err := from.Notifications(ctx)
	check(err)
	fmt.Println(string(local.Bytes()[:7]), n.Imm, string(weights.Bytes()[:9]))

	var blocks []hixl.Desc
	for i := range uint64(500) {
		blocks = append(blocks, hixl.Desc{Local: local, LocalOff: i * 1024, Remote: remote, RemoteOff: i * 2048, Len: 1024})
	}
	h, err := peer.Start(&hixl.Transfer{Op: hixl.Write, Descs: blocks, Notify: &hixl.Notification{Name: "sequence 42"}})
	check(err)
	err = h.Wait(ctx)
	check(err)
	n, err = from.Notifications(ctx)
	check(err)
	fmt.Println(n.Name)

	table, row, at := remote, []byte("a row"), uint64(4096)
	err = peer.Push(hixl.Desc{Inline: row, Remote: table, RemoteOff: at})
	check(err)
	err = peer.Flush(ctx)
	check(err)
	fmt.Println(string(weights.Bytes()[at : at+5]))

	compute, copies := worker.NewStream(hixl.StreamConfig{}), worker.NewStream(hixl.StreamConfig{})
	_, err = compute.Call(func() error { grads.Bytes()[0] = 'G'; return nil })
	check(err)
	err = copies.Wait(compute.Record())
	check(err)
	_, err = copies.Transfer(peer, &hixl.Transfer{Op: hixl.Write, Descs: []hixl.Desc{{Local: grads, Remote: remote, Len: grads.Len()}}})
	check(err)
	err = copies.Synchronize(ctx)
	check(err)
	fmt.Println(string(weights.Bytes()[:9]))
	// Output:
	// weights 7 gradients
	// sequence 42
	// a row
	// Gradients
}
