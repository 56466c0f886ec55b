package hixl_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/gohixl/hixl"
)

// One side of a write: open a NIC, register memory, connect, write, wait. README.md
// shows the same lines.
func Example_write() {
	ctx := context.Background()
	there := open("127.88.0.4") // the peer: in another process or on another machine as well
	defer there.nic.Close()
	conn, far := net.Pipe() // to the peer; any connection will do
	go there.connect(ctx, far)
	peerAddr, peerKey := there.region.Addr(), there.region.RKey() // as the peer told us

	nic, err := hixl.OpenNIC(hixl.Config{Address: netip.MustParseAddr("127.88.0.3")})
	check(err)
	defer nic.Close()
	pd := nic.AllocPD()
	buf := make([]byte, 4096)
	region, err := pd.Register(buf, hixl.LocalWrite|hixl.RemoteWrite) // region.Addr and RKey let a peer write here
	check(err)
	cq, err := nic.CreateCQ(128)
	check(err)
	qp, err := nic.CreateQP(hixl.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq})
	check(err)
	remote, err := hixl.ExchangeTCP(ctx, conn, qp.Address())
	check(err)
	check(qp.Connect(remote, hixl.ConnectOptions{}))

	copy(buf, "hello, remote memory")
	check(qp.PostSend(hixl.SendWR{
		Op: hixl.OpWrite, Flags: hixl.Signaled, SGE: []hixl.SGE{region.SGE(0, 20)}, RemoteAddr: peerAddr, RKey: peerKey,
	}))
	done := make([]hixl.Completion, 1)
	_, err = cq.Wait(ctx, done)
	check(err)
	check(done[0].Err()) // nil, or such as "remote access error (10)" with the peer, the place and what to do

	fmt.Printf("%s\n", there.buf[:20])
	// Output: hello, remote memory
}
