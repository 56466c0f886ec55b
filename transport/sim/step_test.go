package sim

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
)

var (
	addrA = netip.MustParseAddr("10.0.0.1")
	addrB = netip.MustParseAddr("10.0.0.2")
	addrC = netip.MustParseAddr("10.0.0.3")
)

// pair makes a network of two hosts.
func pair(t testing.TB, cfg Config) (n *Network, a, b *Conn) {
	t.Helper()
	n = New(cfg)
	return n, host(t, n, addrA), host(t, n, addrB)
}

func host(t testing.TB, n *Network, addr netip.Addr) *Conn {
	t.Helper()
	c, err := n.Host(addr)
	require.NoError(t, err)
	return c
}

// write sends packets of one number each from c to dst.
func write(t testing.TB, c *Conn, dst netip.Addr, first, n int) {
	t.Helper()
	for i := first; i < first+n; i++ {
		k, err := c.WriteBatch([]transport.Tx{{Data: []byte{byte(i >> 8), byte(i), 0xaa, 0x55}, Dst: dst}})
		require.NoError(t, err)
		require.Equal(t, 1, k)
	}
}

// settle advances until nothing is in flight.
func settle(n *Network) {
	for next := n.Next(); next != 0; next = n.Next() {
		n.Advance(next)
	}
}

// numbers reads what write sent.
func numbers(t testing.TB, c *Conn) (got []int) {
	t.Helper()
	slots := transport.NewBatch(c, 64)
	for {
		n, err := c.ReadBatch(slots, false)
		require.NoError(t, err)
		if n == 0 {
			return got
		}
		for _, r := range slots[:n] {
			got = append(got, int(r.Data[0])<<8|int(r.Data[1]))
		}
	}
}

func upTo(n int) (s []int) {
	for i := range n {
		s = append(s, i)
	}
	return s
}

func TestVirtualTime(t *testing.T) {
	n, a, b := pair(t, Config{Link: Link{Delay: 10 * time.Microsecond}})
	require.Equal(t, Start, n.Now())
	require.Zero(t, n.Next())
	write(t, a, addrB, 0, 2)
	due := Start.Add(10 * time.Microsecond)
	require.Equal(t, due, n.Next())
	require.Equal(t, 2, n.InFlight())
	n.Advance(due - 1)
	require.Empty(t, numbers(t, b))
	n.Advance(due)
	require.Equal(t, upTo(2), numbers(t, b))
	require.Zero(t, n.Next())
	n.Advance(Start)
	require.Equal(t, due, n.Now(), "time does not go back")
}

func TestFaults(t *testing.T) {
	const total = 4000
	near := func(t *testing.T, want float64, have uint64) {
		t.Helper()
		require.InDelta(t, want, float64(have)/total, 0.03)
	}
	for _, tt := range []struct {
		name  string
		link  Link
		check func(t *testing.T, c Counters, got []int)
	}{
		{"none", Link{}, func(t *testing.T, _ Counters, got []int) { require.Equal(t, upTo(total), got) }},
		{"loss", Link{Loss: 0.2}, func(t *testing.T, c Counters, got []int) {
			near(t, 0.2, c.Lost)
			require.IsIncreasing(t, got)
			require.Len(t, got, total-int(c.Lost))
		}},
		{"duplicate", Link{Duplicate: 0.1}, func(t *testing.T, c Counters, got []int) {
			near(t, 0.1, c.Duplicated)
			require.IsNonDecreasing(t, got)
			require.Len(t, got, total+int(c.Duplicated))
		}},
		{"reorder", Link{Reorder: 0.1, Delay: time.Microsecond}, func(t *testing.T, c Counters, got []int) {
			near(t, 0.1, c.Reordered)
			require.ElementsMatch(t, upTo(total), got)
			require.NotEqual(t, upTo(total), got)
		}},
		{"jitter keeps the order", Link{Jitter: time.Millisecond}, func(t *testing.T, _ Counters, got []int) {
			require.Equal(t, upTo(total), got)
		}},
		{"corrupt", Link{Corrupt: 0.5}, func(t *testing.T, c Counters, got []int) {
			near(t, 0.5, c.Corrupted)
			require.NotZero(t, c.Malformed)
			require.NotZero(t, c.NoHost, "a destination address was hit")
			require.Len(t, got, int(c.Delivered))
		}},
		{"all of it", Link{Loss: 2, Duplicate: 1, Reorder: 1, Corrupt: 1}, func(t *testing.T, c Counters, got []int) {
			require.Empty(t, got, "a probability above 1 is 1")
			require.EqualValues(t, 2*total, c.Lost)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, a, b := pair(t, Config{Seed: 7, Link: tt.link})
			write(t, a, addrB, 0, total)
			settle(n)
			c := n.Counters()
			require.EqualValues(t, total, c.Sent)
			require.Equal(t, c.Sent+c.Duplicated,
				c.Delivered+c.Lost+c.Filtered+c.Cut+c.TooBig+c.QueueFull+c.Malformed+c.NoHost+c.Overflow,
				"every packet has one end")
			tt.check(t, c, numbers(t, b))
		})
	}
}

// Corruption reaches every covered header field, and the ICRC catches each one,
// as it must with all 32 bits in view. What it does not cover passes.
func TestCorruptionMeetsICRC(t *testing.T) {
	for _, addrs := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}} {
		n := New(Config{Seed: 3, Link: Link{Corrupt: 1}})
		a, b := host(t, n, netip.MustParseAddr(addrs[0])), host(t, n, netip.MustParseAddr(addrs[1]))
		h := roce.Headers{
			Src: a.LocalAddr(), Dst: b.LocalAddr(), SrcPort: 0xc123, DstPort: transport.Port,
			ID: 0x1234, Frag: roce.DontFragment,
		}
		p := roce.Packet{Opcode: roce.OpSendOnly, DestQP: 0x11, PSN: 1}
		p.SetPayload([]byte("hello"))
		sealed := p.Append(nil)
		h.Seal(sealed)

		seen := map[string]int{}
		slots := transport.NewBatch(b, 1)
		for range 4000 {
			_, err := a.WriteBatch([]transport.Tx{{Data: sealed, Dst: b.LocalAddr(), SrcPort: 0xc123, ID: 0x1234, TOS: 2}})
			require.NoError(t, err)
			settle(n)
			k, err := b.ReadBatch(slots, false)
			require.NoError(t, err)
			if k == 0 {
				continue
			}
			r := &slots[0]
			got := roce.Headers{Src: r.Src, Dst: r.Dst, SrcPort: r.SrcPort, DstPort: transport.Port, ID: r.ID, Frag: r.Frag}
			if !r.HaveID {
				got.ID, got.Frag = h.ID, h.Frag
			}
			switch {
			case r.TOS != 2:
				seen["tos"]++
			case r.TTL != 64:
				seen["ttl"]++
			case got.Src != h.Src:
				seen["src"]++
			case got.SrcPort != h.SrcPort:
				seen["port"]++
			case got.ID != h.ID:
				seen["id"]++
			case got.Frag != h.Frag:
				seen["frag"]++
			case string(r.Data) != string(sealed):
				seen["data"]++
			default:
				seen["hidden"]++ // IP checksum, flow label
			}
			masked := r.TOS != 2 || r.TTL != 64 || (got == h && string(r.Data) == string(sealed)) ||
				(got == h && r.Data[4] != sealed[4])
			require.Equal(t, masked, got.Check(r.Data), "%+v", r)
		}
		want := []string{"tos", "ttl", "src", "port", "data", "hidden"}
		if a.LocalAddr().Is4() {
			want = append(want, "id", "frag")
		}
		for _, field := range want {
			require.NotZero(t, seen[field], "%s was never hit: %v", field, seen)
		}
	}
}

func TestMTU(t *testing.T) {
	n, a, b := pair(t, Config{Link: Link{MTU: 1500}})
	for _, size := range []int{1500 - 28, 1500 - 27} {
		_, err := a.WriteBatch([]transport.Tx{{Data: make([]byte, size), Dst: addrB}})
		require.NoError(t, err)
	}
	settle(n)
	require.EqualValues(t, 1, n.Counters().TooBig)
	require.Len(t, numbers(t, b), 1)

	n.SetLink(addrA, addrB, Link{MTU: 9000})
	_, err := a.WriteBatch([]transport.Tx{{Data: make([]byte, 1500-27), Dst: addrB}})
	require.NoError(t, err)
	require.EqualValues(t, 2, n.Counters().TooBig, "a link has at most the MTU of the network")
	n.SetLink(addrA, addrB, Link{MTU: 576})
	_, err = a.WriteBatch([]transport.Tx{{Data: make([]byte, 577-28), Dst: addrB}})
	require.NoError(t, err)
	require.EqualValues(t, 3, n.Counters().TooBig)
}

func TestRate(t *testing.T) {
	// 8 Gbit/s is a byte a nanosecond: packets of 32 bytes leave 32 ns apart.
	n, a, b := pair(t, Config{Link: Link{Rate: 8e9, Delay: time.Microsecond, QueueBytes: 10 * 32}})
	write(t, a, addrB, 0, 12)
	require.EqualValues(t, 2, n.Counters().QueueFull)
	require.Equal(t, Start.Add(1032), n.Next())
	n.Advance(Start.Add(1032 + 9*32 - 1))
	require.Len(t, numbers(t, b), 9)
	write(t, a, addrB, 0, 1)
	settle(n)
	require.Len(t, numbers(t, b), 2)
	require.EqualValues(t, 2, n.Counters().QueueFull, "the queue has drained")
}

func TestMarking(t *testing.T) {
	for _, addrs := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}} {
		n := New(Config{Link: Link{Rate: 8e9, MarkBytes: 100}})
		a, b := host(t, n, netip.MustParseAddr(addrs[0])), host(t, n, netip.MustParseAddr(addrs[1]))
		for i := range 8 {
			_, err := a.WriteBatch([]transport.Tx{{Data: make([]byte, 32), Dst: b.LocalAddr(), TOS: uint8(i&1) * 2}})
			require.NoError(t, err)
		}
		settle(n)
		slots := transport.NewBatch(b, 8)
		k, err := b.ReadBatch(slots, false)
		require.NoError(t, err)
		require.Equal(t, 8, k)
		require.EqualValues(t, 0, slots[0].TOS)
		require.EqualValues(t, 2, slots[1].TOS, "the queue was short")
		require.EqualValues(t, 0, slots[6].TOS, "not ECN capable")
		require.EqualValues(t, 3, slots[7].TOS, "congestion experienced")
		require.NotZero(t, n.Counters().Marked)
	}
}

func TestReceiveQueueIsBounded(t *testing.T) {
	n, a, b := pair(t, Config{RecvQueue: 40})
	write(t, a, addrB, 0, 25)
	settle(n)
	require.Equal(t, upTo(10), numbers(t, b))
	require.EqualValues(t, 15, n.Counters().Overflow)
	require.EqualValues(t, 15, b.Stats().RxOverflow)
	write(t, a, addrB, 0, 5)
	settle(n)
	require.Equal(t, upTo(5), numbers(t, b))
}

func TestPartition(t *testing.T) {
	n, a, b := pair(t, Config{Link: Link{Delay: time.Microsecond}})
	c := host(t, n, addrC)
	write(t, a, addrB, 0, 1)
	n.Partition([]netip.Addr{addrA}, []netip.Addr{addrB})
	write(t, b, addrA, 1, 1)
	write(t, a, addrC, 2, 1)
	settle(n)
	require.Empty(t, numbers(t, b), "what was on the way is cut too")
	require.Empty(t, numbers(t, a))
	require.Equal(t, []int{2}, numbers(t, c))
	require.EqualValues(t, 2, n.Counters().Cut)

	n.Heal(addrB, addrA)
	write(t, a, addrB, 3, 1)
	settle(n)
	require.Equal(t, []int{3}, numbers(t, b))

	n.Cut(addrA, addrB)
	n.Cut(addrA, addrC)
	n.HealAll()
	write(t, a, addrB, 4, 1)
	write(t, a, addrC, 5, 1)
	settle(n)
	require.Equal(t, []int{4}, numbers(t, b))
	require.Equal(t, []int{5}, numbers(t, c))
}

func TestLinksDiffer(t *testing.T) {
	n, a, b := pair(t, Config{Link: Link{Loss: 1}})
	n.SetLink(addrA, addrB, Link{})
	write(t, a, addrB, 0, 3)
	write(t, b, addrA, 0, 3)
	settle(n)
	require.Len(t, numbers(t, b), 3)
	require.Empty(t, numbers(t, a), "the other direction is as it was")
	n.SetDefaultLink(Link{})
	write(t, b, addrA, 0, 3)
	settle(n)
	require.Len(t, numbers(t, a), 3)
}

func TestFilter(t *testing.T) {
	n, a, b := pair(t, Config{Link: Link{Delay: time.Microsecond}})
	writes := 0
	n.SetFilter(func(d *Delivery) Verdict {
		require.Equal(t, addrA, d.Src)
		require.Equal(t, addrB, d.Dst)
		if d.Err != nil || d.Packet.Opcode != roce.OpWriteMiddle {
			return Verdict{}
		}
		writes++
		switch writes {
		case 3:
			return Verdict{Drop: true}
		case 4:
			return Verdict{Copies: 2}
		case 5:
			return Verdict{Delay: time.Millisecond}
		}
		return Verdict{}
	})
	send := func(op roce.Opcode, psn roce.PSN) {
		p := roce.Packet{Opcode: op, PSN: psn}
		p.SetPayload(make([]byte, 256))
		_, err := a.WriteBatch([]transport.Tx{{Data: p.Append(nil), Dst: addrB}})
		require.NoError(t, err)
	}
	send(roce.OpWriteFirst, 0)
	for i := range roce.PSN(6) {
		send(roce.OpWriteMiddle, i+1)
	}
	settle(n)
	n.SetFilter(nil)
	write(t, a, addrB, 1, 1)
	settle(n)

	slots := transport.NewBatch(b, 32)
	k, err := b.ReadBatch(slots, false)
	require.NoError(t, err)
	var psns []roce.PSN
	for _, r := range slots[:k-1] {
		var p roce.Packet
		require.NoError(t, p.Decode(r.Data))
		psns = append(psns, p.PSN)
	}
	require.Equal(t, []roce.PSN{0, 1, 2, 4, 4, 4, 6, 5}, psns)
	require.EqualValues(t, 1, n.Counters().Filtered)
	require.EqualValues(t, 2, n.Counters().Duplicated)
}

func TestHosts(t *testing.T) {
	n := New(Config{})
	for _, bad := range []netip.Addr{{}, netip.IPv4Unspecified(), netip.MustParseAddr("224.0.0.1"), netip.IPv6Unspecified()} {
		_, err := n.Host(bad)
		require.ErrorIs(t, err, transport.ErrNoAddr)
	}
	a := host(t, n, netip.MustParseAddr("::ffff:10.0.0.1"))
	require.Equal(t, addrA, a.LocalAddr())
	_, err := n.Host(addrA)
	require.ErrorIs(t, err, transport.ErrInUse)
	require.NoError(t, a.Close())
	b := host(t, n, addrA)
	c := host(t, n, addrC)
	require.NoError(t, n.Close())
	require.Error(t, b.Close())
	require.Error(t, c.Close())
}

// Many hosts cost little, each talks to each.
func TestManyHosts(t *testing.T) {
	n := New(Config{Link: Link{Jitter: time.Microsecond}})
	var hosts []*Conn
	for i := range 2000 {
		hosts = append(hosts, host(t, n, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})))
	}
	for i, h := range hosts {
		write(t, h, hosts[(i*7+1)%len(hosts)].LocalAddr(), i, 1)
	}
	settle(n)
	for i, h := range hosts {
		to := hosts[(i*7+1)%len(hosts)]
		require.Equal(t, []int{i}, numbers(t, to), h.LocalAddr())
	}
}

// play runs a seeded mix of traffic, faults and cuts among a few hosts.
func play(t *testing.T, seed uint64) (uint64, Counters, []int) {
	n := New(Config{Seed: seed, Link: Link{
		Delay: 5 * time.Microsecond, Jitter: 3 * time.Microsecond, Loss: 0.1, Duplicate: 0.1,
		Reorder: 0.1, Corrupt: 0.1, Rate: 10e9, QueueBytes: 4096,
	}})
	hosts := []*Conn{host(t, n, addrA), host(t, n, addrB), host(t, n, addrC)}
	rng := rand.New(rand.NewPCG(seed, 1))
	var got []int
	for i := range 1500 {
		from, to := hosts[rng.IntN(3)], hosts[rng.IntN(3)]
		write(t, from, to.LocalAddr(), i, 1)
		switch rng.IntN(50) {
		case 0:
			n.Cut(from.LocalAddr(), to.LocalAddr())
		case 1:
			n.HealAll()
		}
		n.Advance(n.Now().Add(time.Duration(rng.IntN(1000))))
		got = append(got, numbers(t, to)...)
	}
	settle(n)
	return n.Trace(), n.Counters(), got
}

func TestReplay(t *testing.T) {
	traces := map[uint64]bool{}
	for seed := range uint64(5) {
		trace, counters, got := play(t, seed)
		again, countersAgain, gotAgain := play(t, seed)
		require.Equal(t, trace, again, "seed %d", seed)
		require.Equal(t, counters, countersAgain)
		require.Equal(t, got, gotAgain)
		traces[trace] = true
	}
	require.Len(t, traces, 5, "another seed is another run")
}

func TestEventsPopInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h eventHeap
	for i := range 2000 {
		h.push(event{at: mono.Time(rng.IntN(100)), seq: uint64(i)})
		if rng.IntN(3) == 0 {
			h.pop()
		}
	}
	var last event
	for len(h) > 0 {
		e := h.pop()
		require.True(t, e.at > last.at || (e.at == last.at && e.seq >= last.seq))
		last = e
	}
}
