package sim

import (
	"net/netip"
	"time"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
)

// Filter decides about a packet as it is sent. It is called with the network
// locked and must not call it.
type Filter func(*Delivery) Verdict

// Verdict is what a Filter wants. The zero value lets the packet pass to the
// random faults.
type Verdict struct {
	Drop   bool
	Copies int           // extra copies; each meets its own random faults
	Delay  time.Duration // added to the time of arrival, of the copies too
}

// Delivery is a packet about to be put on a link. It is valid during the call.
type Delivery struct {
	Now      mono.Time
	Src, Dst netip.Addr
	SrcPort  uint16
	ID       uint16      // IPv4 identification
	Data     []byte      // UDP payload; may be changed in place
	Packet   roce.Packet // Data decoded, if Err is nil
	Err      error       // why Data does not decode
}

func (n *Network) ask(k linkKey, f *frame) Verdict {
	f.parse()
	n.asked = Delivery{Now: n.now, Src: k.src, Dst: k.dst, SrcPort: f.srcPort, ID: f.id, Data: f.payload()}
	n.asked.Err = n.asked.Packet.Decode(n.asked.Data)
	return n.filter(&n.asked)
}
