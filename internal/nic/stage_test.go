package nic

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/transport"
)

func testStage(trains transport.Trains) (*stage, *route) {
	r := &route{dst: netip.MustParseAddr("10.0.0.2"), srcPort: 0xC000, tos: 2}
	r.headers = roce.Headers{Src: netip.MustParseAddr("10.0.0.1"), Dst: r.dst, SrcPort: r.srcPort, DstPort: roce.Port, Frag: roce.DontFragment}
	return &stage{buf: make([]byte, 1<<16), trains: trains}, r
}

// trainSizes lists the packets of each Tx.
func trainSizes(st *stage) (sizes [][]int) {
	for i := range st.txs {
		var s []int
		for k := range st.txs[i].Packets() {
			s = append(s, len(st.txs[i].Packet(k)))
		}
		sizes = append(sizes, s)
	}
	return sizes
}

func TestTrains(t *testing.T) {
	tests := []struct {
		name   string
		trains transport.Trains
		sizes  []int
		want   [][]int
	}{
		{"off", transport.Trains{}, []int{100, 100, 100}, [][]int{{100}, {100}, {100}}},
		{"equal", transport.Trains{MaxSegments: 8, MaxBytes: 1000}, []int{100, 100, 100}, [][]int{{100, 100, 100}}},
		{"a shorter one ends it", transport.Trains{MaxSegments: 8, MaxBytes: 1000}, []int{100, 100, 40, 40, 100}, [][]int{{100, 100, 40}, {40}, {100}}},
		{"a longer one begins anew", transport.Trains{MaxSegments: 8, MaxBytes: 1000}, []int{116, 100, 116, 116}, [][]int{{116, 100}, {116, 116}}},
		{"segments", transport.Trains{MaxSegments: 2, MaxBytes: 1000}, []int{100, 100, 100}, [][]int{{100, 100}, {100}}},
		{"bytes", transport.Trains{MaxSegments: 8, MaxBytes: 250}, []int{100, 100, 100}, [][]int{{100, 100}, {100}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st, r := testStage(tt.trains)
			var ids []uint16
			for _, n := range tt.sizes {
				b, id := st.place(nil, r, r.tos, n)
				require.Len(t, b, n)
				ids = append(ids, id)
			}
			require.Equal(t, tt.want, trainSizes(st))
			var want []uint16
			for _, train := range tt.want {
				for i := range train {
					want = append(want, uint16(i))
				}
			}
			require.Equal(t, want, ids, "the identification is the index in the train")
			require.Equal(t, len(tt.sizes), st.packets)
		})
	}
}

func TestTrainsKeepApart(t *testing.T) {
	st, r := testStage(transport.Trains{MaxSegments: 8, MaxBytes: 1000})
	other := *r
	other.dst = netip.MustParseAddr("10.0.0.3")
	st.place(nil, r, r.tos, 50)
	st.place(nil, &other, r.tos, 50)
	st.place(nil, &other, cnpTOS, 50)
	require.Equal(t, [][]int{{50}, {50}, {50}}, trainSizes(st))
}

func TestUndo(t *testing.T) {
	for keep := range 7 {
		st, r := testStage(transport.Trains{MaxSegments: 3, MaxBytes: 1000})
		sizes := []int{100, 100, 100, 100, 60, 80}
		var m mark
		for i, n := range sizes {
			if i == keep {
				m = st.mark()
			}
			st.place(nil, r, r.tos, n)
		}
		if keep == len(sizes) {
			m = st.mark()
		}
		st.undo(m)
		want, _ := testStage(st.trains)
		for _, n := range sizes[:keep] {
			want.place(nil, r, r.tos, n)
		}
		require.Equal(t, trainSizes(want), trainSizes(st), "%d kept", keep)
		require.Equal(t, want.used, st.used)
		require.Equal(t, keep, st.packets)
		require.Len(t, st.meta, len(st.txs))
	}
}

// When trains turn out to be impossible, their packets are sealed again as single
// ones.
func TestSplit(t *testing.T) {
	st, r := testStage(transport.Trains{MaxSegments: 3, MaxBytes: 1000})
	for _, n := range []int{60, 60, 60, 60, 40} {
		b, id := st.place(nil, r, r.tos, n)
		seal(r.headers, b, id)
	}
	require.Equal(t, [][]int{{60, 60, 60}, {60, 40}}, trainSizes(st))
	st.split(1)
	require.Equal(t, [][]int{{60}, {40}}, trainSizes(st), "what was sent is gone")
	for i := range st.txs {
		require.True(t, r.headers.Check(st.txs[i].Data), "sealed for identification 0")
	}
	require.Len(t, st.meta, 2)
	_, id := st.place(nil, r, r.tos, 40)
	require.Zero(t, id)
}

// Packets that are placed together lie and leave as those that are placed one by one.
func TestPlaceRun(t *testing.T) {
	for _, trains := range []transport.Trains{{}, {MaxSegments: 5, MaxBytes: 1000}, {MaxSegments: 64, MaxBytes: 450}} {
		for before := range 7 {
			st, r := testStage(trains)
			want, _ := testStage(trains)
			for range before {
				st.place(nil, r, r.tos, 110)
				want.place(nil, r, r.tos, 110)
			}
			const n = 17
			for at := 0; at < n; {
				m := st.mark()
				b, id, k := st.placeRun(nil, r, r.tos, 100, n-at)
				require.Len(t, b, 100*k)
				for i := range k {
					m2 := want.mark()
					require.Equal(t, m2, m.after(i, 100, id == 0))
					one, wantID := want.place(nil, r, r.tos, 100)
					require.Len(t, one, 100)
					require.Equal(t, wantID, id+uint16(i))
				}
				at += k
				require.Equal(t, want.mark(), st.mark())
				require.Equal(t, want.open, st.open)
				require.Equal(t, trainSizes(want), trainSizes(st))
			}
		}
	}
}
