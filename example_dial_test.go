package hixl_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/gohixl/hixl"
)

// A server that lets clients write into its memory, and a client. Who connects is
// told where by private data; nothing but RDMA is spoken.
func ExampleNIC_Dial() {
	ctx := context.Background()

	// The server.
	there, err := hixl.OpenNIC(hixl.Config{Address: netip.MustParseAddr("127.93.2.1")})
	check(err)
	defer there.Close()
	pd := there.AllocPD()
	buf := make([]byte, 4096)
	region, err := pd.Register(buf, hixl.LocalWrite|hixl.RemoteWrite)
	check(err)
	scq, err := there.CreateCQ(128)
	check(err)
	where := fmt.Appendf(nil, "%d %d", region.Addr(), region.RKey())
	ln, err := there.Listen(ctx, ":18515", hixl.ListenConfig{Accept: hixl.AcceptOptions{
		QPConfig: hixl.QPConfig{PD: pd, SendCQ: scq, RecvCQ: scq}, PrivateData: where,
	}})
	check(err)
	defer ln.Close()
	gone := make(chan string)
	go func() {
		conn, err := ln.Accept(ctx)
		check(err)
		defer conn.Close()
		<-conn.Done()
		gone <- fmt.Sprintf("%s, who has disconnected: %v", conn.PrivateData(), errors.Is(conn.Err(), hixl.ErrDisconnected))
	}()

	// The client, as a rule on another machine.
	here, err := hixl.OpenNIC(hixl.Config{Address: netip.MustParseAddr("127.93.2.2")})
	check(err)
	defer here.Close()
	cq, err := here.CreateCQ(128)
	check(err)
	conn, err := here.Dial(ctx, "127.93.2.1:18515", hixl.DialOptions{
		QPConfig: hixl.QPConfig{PD: here.AllocPD(), SendCQ: cq, RecvCQ: cq}, PrivateData: []byte("a client"),
	})
	check(err)
	var addr uint64
	var key uint32
	_, err = fmt.Sscan(string(conn.PrivateData()), &addr, &key)
	check(err)
	check(conn.PostSend(hixl.SendWR{Op: hixl.OpWrite, Flags: hixl.Signaled, Inline: []byte("hello, remote memory"), RemoteAddr: addr, RKey: key}))
	done := make([]hixl.Completion, 1)
	_, err = cq.Wait(ctx, done)
	check(err)
	check(done[0].Err())
	check(conn.Disconnect(ctx))
	check(conn.Close())

	fmt.Println(<-gone)
	fmt.Printf("%s\n", buf[:20])
	// Output:
	// a client, who has disconnected: true
	// hello, remote memory
}

// A server that looks at what the client says before it decides.
func ExampleListener_AcceptRequest() {
	ctx := context.Background()
	there, here := open("127.93.2.3"), open("127.93.2.4")
	defer there.nic.Close()
	defer here.nic.Close()
	ln, err := there.nic.Listen(ctx, ":7174", hixl.ListenConfig{})
	check(err)
	go func() {
		for {
			req, err := ln.AcceptRequest(ctx)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			check(err)
			if string(req.PrivateData()) != "let me in" {
				check(req.Reject([]byte("the word is missing")))
				continue
			}
			_, err = req.Accept(hixl.AcceptOptions{QP: there.qp})
			check(err)
		}
	}()
	dial := func(word string) error {
		_, err := here.nic.Dial(ctx, ln.Addr().String(), hixl.DialOptions{QP: here.qp, PrivateData: []byte(word)})
		return err
	}
	err = dial("open")
	fmt.Println(err)
	var rejected *hixl.RejectedError
	if errors.As(err, &rejected) {
		fmt.Printf("%s\n", rejected.PrivateData[:19])
	}
	fmt.Println(dial("let me in"), here.qp.State())
	check(ln.Close())
	// Output:
	// hixl: dial 127.93.2.3:7174: rejected: consumer reject (28): its application said no, perhaps with private data
	// the word is missing
	// <nil> RTS
}
