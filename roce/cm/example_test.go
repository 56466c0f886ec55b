package cm_test

import (
	"fmt"
	"net/netip"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/cm"
)

// A client and a server, each with its agent. Here MADs are carried by function
// calls; a NIC puts them into packets from queue pair 1 to queue pair 1.
func Example() {
	now := mono.Time(1)
	rnd := random(1) // a NIC takes a cryptographic source
	agent := func(addr string, guid uint64) *cm.Agent {
		a, err := cm.NewAgent(cm.Config{Addr: netip.MustParseAddr(addr), CAGUID: guid, Rand: rnd.next})
		if err != nil {
			panic(err)
		}
		return a
	}
	client, server := agent("10.0.0.1", 1), agent("10.0.0.2", 2)
	carry := func(from, to *cm.Agent, src string) {
		for _, s := range from.TakeSends(nil) {
			attr, _ := cm.Peek(s.MAD[:])
			fmt.Println(src, "sends", attr)
			to.Handle(now, netip.MustParseAddr(src), s.MAD[:])
		}
	}

	_ = server.Listen(cm.PortSpaceTCP.Service(7174))
	id, _ := client.Connect(now, cm.ConnectParams{
		Peer: netip.MustParseAddr("10.0.0.2"), Service: cm.PortSpaceTCP.Service(7174), SrcPort: 40000,
		QPN: 0x51, Private: []byte("hello"), // the queue pair is in INIT
	})
	carry(client, server, "10.0.0.1")

	for _, e := range server.TakeEvents(nil) {
		fmt.Printf("%v from %v: %s\n", e.Kind, e.Request.Src, e.Private[:5])
		qp, _ := server.Prepare(e.ID, cm.AcceptParams{QPN: 0x58})
		fmt.Printf("server connects its queue pair to %#x, MTU %v\n", uint32(qp.DestQPN), qp.MTU)
		_ = server.Accept(now, e.ID) // its queue pair is in RTS
	}
	carry(server, client, "10.0.0.2")

	var clientQP cm.QPParams
	for _, e := range client.TakeEvents(nil) {
		clientQP = e.QP
		fmt.Println(e.Kind)
		_ = client.Confirm(e.ID, nil) // its queue pair is in RTS
	}
	carry(client, server, "10.0.0.1")
	for _, e := range server.TakeEvents(nil) {
		fmt.Println(e.Kind)
	}
	fmt.Println("client sends to", clientQP.DestQPN == roce.QPN(0x58))

	_ = client.Disconnect(now, id, nil)
	carry(client, server, "10.0.0.1")
	carry(server, client, "10.0.0.2")
	now = client.Deadline()
	client.Expire(now)
	for _, e := range client.TakeEvents(nil) {
		fmt.Println(e.Kind)
	}

	// Output:
	// 10.0.0.1 sends REQ
	// CONNECT_REQUEST from 10.0.0.1:40000: hello
	// server connects its queue pair to 0x51, MTU 1024
	// 10.0.0.2 sends REP
	// CONNECT_RESPONSE
	// 10.0.0.1 sends RTU
	// ESTABLISHED
	// client sends to true
	// 10.0.0.1 sends DREQ
	// 10.0.0.2 sends DREP
	// DISCONNECTED
	// TIMEWAIT_EXIT
}
