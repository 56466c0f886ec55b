package hixl_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/netip"

	"github.com/gohixl/hixl"
)

// Two NICs in one process, each on a loopback address of its own: one writes into
// the other's memory and reads it back.
func Example() {
	ctx := context.Background()
	here, there := open("127.88.0.1"), open("127.88.0.2")
	defer here.nic.Close()
	defer there.nic.Close()

	// Any connection will do to exchange addresses.
	c1, c2 := net.Pipe()
	go there.connect(ctx, c2)
	here.connect(ctx, c1)

	copy(here.buf, "hello, remote memory")
	here.do(ctx, hixl.SendWR{Op: hixl.OpWrite, SGE: []hixl.SGE{here.region.SGE(0, 20)}, RemoteAddr: there.region.Addr(), RKey: there.region.RKey()})
	fmt.Printf("there: %s\n", there.buf[:20])

	here.do(ctx, hixl.SendWR{Op: hixl.OpRead, SGE: []hixl.SGE{here.region.SGE(100, 20)}, RemoteAddr: there.region.Addr(), RKey: there.region.RKey()})
	fmt.Printf("here:  %s\n", here.buf[100:120])
	// Output:
	// there: hello, remote memory
	// here:  hello, remote memory
}

type side struct {
	nic    *hixl.NIC
	buf    []byte
	region *hixl.Region
	cq     *hixl.CQ
	qp     *hixl.QP
}

func open(addr string) *side {
	var s side
	var err error
	s.nic, err = hixl.OpenNIC(hixl.Config{Address: netip.MustParseAddr(addr)})
	check(err)
	pd := s.nic.AllocPD()
	s.buf = make([]byte, 4096)
	s.region, err = pd.Register(s.buf, hixl.LocalWrite|hixl.RemoteWrite|hixl.RemoteRead)
	check(err)
	s.cq, err = s.nic.CreateCQ(128)
	check(err)
	s.qp, err = s.nic.CreateQP(hixl.QPConfig{PD: pd, SendCQ: s.cq, RecvCQ: s.cq, SignalAll: true})
	check(err)
	return &s
}

func (s *side) connect(ctx context.Context, conn net.Conn) {
	remote, err := hixl.ExchangeTCP(ctx, conn, s.qp.Address())
	check(err)
	check(s.qp.Connect(remote, hixl.ConnectOptions{}))
}

// do posts one work request and waits for it.
func (s *side) do(ctx context.Context, wr hixl.SendWR) {
	check(s.qp.PostSend(wr))
	done := make([]hixl.Completion, 1)
	_, err := s.cq.Wait(ctx, done)
	check(err)
	check(done[0].Err())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
