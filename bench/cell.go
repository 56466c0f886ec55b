package bench

import "time"

// Depth chosen when none is given: deep enough to hide a round trip, and no
// more bytes than a few windows of the engine, nor more messages of all queue
// pairs together than a socket's receive buffer holds packets.
const (
	autoDepth         = 64
	autoDepthBytes    = 8 << 20
	autoDepthMessages = 8 << 10
	minAutoDepth      = 4
)

// cell is one thing to measure.
type cell struct {
	ID    int `json:"id"`
	Op    Op  `json:"op"`
	Size  int `json:"size"`
	QPs   int `json:"qps"`
	Depth int `json:"depth"`
	MTU   int `json:"mtu"`
	// List is how many messages are posted at once; 0 is a quarter of Depth.
	List int `json:"list,omitempty"`
}

// cells returns the combinations, by size, then operation, so that a round
// measures neighbours of one size together.
func (c Config) cells() []cell {
	var out []cell
	add := func(op Op, size int) {
		for _, mtu := range c.MTUs {
			for _, qps := range c.QPs {
				for _, depth := range c.Depths {
					out = append(out, newCell(len(out), op, size, qps, depth, mtu))
				}
			}
		}
	}
	for _, size := range c.Sizes {
		for _, op := range c.Ops {
			if !op.atomic() {
				add(op, size)
			}
		}
	}
	for _, op := range c.Ops {
		if op.atomic() {
			add(op, atomicSize)
		}
	}
	return out
}

func newCell(id int, op Op, size, qps, depth, mtu int) cell {
	if depth == 0 {
		depth = min(autoDepth, max(min(autoDepthBytes/size, autoDepthMessages/qps), minAutoDepth))
	}
	return cell{ID: id, Op: op, Size: size, QPs: qps, Depth: depth, MTU: mtu}
}

// layout is where the cell's messages lie in a region.
func (c cell) layout(region int) (layout, error) {
	if c.Op.atomic() {
		// One result word for each message outstanding.
		return newLayout(region, atomicSize*c.Depth, c.QPs)
	}
	return newLayout(region, c.Size, c.QPs)
}

// walks is how many bytes the cell's messages walk through in a region.
func (c cell) walks(region int) int {
	switch l, err := c.layout(region); {
	case err != nil:
		return 0
	case c.Op == OpCAS:
		return slotAlign * c.QPs
	case c.Op == OpFAA:
		return slotAlign
	default:
		return l.used()
	}
}

// group is the number of messages posted at once, the last of them signaled.
func (c cell) group() int {
	if c.List > 0 {
		return c.List
	}
	return max(1, c.Depth/4)
}

// receives is the number of receives a lane keeps posted: many more than the
// requester has outstanding, so that a consumer that is not scheduled for a
// while costs no RNR NAK. A multiple of 4, since they are posted by quarters.
func (c cell) receives() int {
	return max(4, min(max(1024, 16*c.Depth), 4*MaxDepth, maxCQ/c.QPs)&^3)
}

// reads is the number of READs and atomics in flight on a lane, of the depth.
func (c cell) reads() int { return min(c.Depth, maxReads) }

// maxReads is the most that a queue pair can have in flight (verbs' max_rd_atomic
// of this stack).
const maxReads = 128

// minSlice is the shortest timed part of a round: below it, starting and
// draining would be most of what is measured.
const minSlice = 20 * time.Millisecond

// budget is how long and how much one round of a cell runs at least. A part
// without any is left out.
type budget struct {
	warm, bandwidth, latency time.Duration
	// Messages that a part sends even when its time is over: with faults
	// injected, enough that some are met.
	minMessages, minLatency uint64
}

// budget divides the duration among rounds.
func (c Config) budget(ce cell) budget {
	d := max(c.Duration/time.Duration(c.Rounds), minSlice)
	b := budget{warm: d / 10, bandwidth: d, latency: d / 2, minMessages: uint64(2 * ce.Depth), minLatency: 10}
	if rate := max(c.Faults.Loss, c.Faults.Reorder, c.Faults.Duplicate, c.Faults.Corrupt); rate > 0 {
		packets := uint64(min(10/rate, faultPackets))
		b.minMessages = max(b.minMessages, packets/uint64((ce.Size+smallestPacket-1)/smallestPacket)+1)
	}
	return b
}

const (
	// faultPackets bounds the packets that a cell sends to meet a fault.
	faultPackets = 20000
	// smallestPacket is the path MTU assumed when counting a message's packets.
	smallestPacket = 4096
)
