package xdp

// depth says how many chunks the kernel shall have to put packets in. It uses all
// that it has in turn, so that each packet is written where one lay that many
// packets ago: the fewer they are, the more likely the processor that writes has
// their memory and its addresses in its caches still. With too few of them packets
// are lost while the reader is late. So there are at least as many as a peer sends
// unanswered, twice as many as have been seen waiting, and more for good once
// all have been in use.
type depth struct {
	all   int // chunks that there are
	least int
	now   int // between least and all

	has  int // chunks that the kernel has, or that wait to be read
	peak int // most that have waited since the last change
	seen int // chunks since then
}

const (
	// minDepth takes what the connections to one peer may have unanswered together, 2 MiB
	// in packets of 1 KiB, behind a few of others.
	minDepth = 2048 + 64
	// depthRest is after how many chunks fewer are tried.
	depthRest = 1 << 17
)

func newDepth(all int) depth {
	least := min(minDepth, all)
	return depth{all: all, least: least, now: least}
}

// lacks returns how many chunks more the kernel shall have, which may be negative.
func (d *depth) lacks() int { return d.now - d.has }

// gave counts chunks that the kernel was given.
func (d *depth) gave(n int) { d.has += n }

// waited notes how many chunks wait to be read.
func (d *depth) waited(n int) {
	if n <= d.peak {
		return
	}
	d.peak = n
	if n >= d.has {
		d.least = min(max(d.least, 2*n), d.all)
	}
	if want := max(2*n, d.least); want > d.now {
		d.now, d.seen = min(want, d.all), 0
	}
}

// took counts chunks that were read.
func (d *depth) took(n int) {
	d.has -= n
	if d.seen += n; d.seen < depthRest {
		return
	}
	if 4*d.peak < d.now {
		d.now = max(d.now/2, d.least)
	}
	d.seen, d.peak = 0, 0
}
