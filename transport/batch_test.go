package transport_test

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/transport"
)

var (
	addr4 = netip.MustParseAddr("192.0.2.1")
	peer4 = netip.MustParseAddr("192.0.2.2")
	addr6 = netip.MustParseAddr("2001:db8::1")
	peer6 = netip.MustParseAddr("2001:db8::2")
)

func TestPackets(t *testing.T) {
	for _, tt := range []struct {
		size, seg int
		want      []int
	}{
		{100, 0, []int{100}},
		{100, 100, []int{100}},
		{100, 200, []int{100}},
		{100, -1, []int{100}},
		{0, 0, []int{0}},
		{100, 50, []int{50, 50}},
		{100, 40, []int{40, 40, 20}},
		{3, 1, []int{1, 1, 1}},
	} {
		data := make([]byte, tt.size)
		for i := range data {
			data[i] = byte(i)
		}
		tx, rx := transport.Tx{Data: data, Seg: tt.seg}, transport.Rx{Data: data, Seg: tt.seg}
		require.Equal(t, len(tt.want), tx.Packets())
		require.Equal(t, len(tt.want), rx.Packets())
		require.Equal(t, len(tt.want) > 1, tx.IsTrain())
		var whole []byte
		for i, n := range tt.want {
			require.Len(t, tx.Packet(i), n)
			require.Equal(t, tx.Packet(i), rx.Packet(i))
			whole = append(whole, tx.Packet(i)...)
		}
		require.Equal(t, string(data), string(whole), "%d by %d", tt.size, tt.seg)
	}
}

func TestTrainsSegments(t *testing.T) {
	trains := transport.Trains{MaxSegments: 128, MaxBytes: 65507}
	for size, want := range map[int]int{1: 128, 511: 128, 512: 127, 1056: 62, 4128: 15, 65507: 1, 70000: 1, 0: 1, -5: 1} {
		require.Equal(t, want, trains.Segments(size), "%d bytes", size)
	}
	require.Equal(t, 1, transport.Trains{}.Segments(100))
}

func TestCheckTx(t *testing.T) {
	trains := transport.Trains{MaxSegments: 4, MaxBytes: 1000}
	data := make([]byte, 70000)
	for _, tt := range []struct {
		name   string
		local  netip.Addr
		tx     transport.Tx
		trains transport.Trains
		want   error
	}{
		{"good", addr4, transport.Tx{Data: data[:64], Dst: peer4}, trains, nil},
		{"good 6", addr6, transport.Tx{Data: data[:64], Dst: peer6}, trains, nil},
		{"largest 4", addr4, transport.Tx{Data: data[:65507], Dst: peer4}, trains, nil},
		{"too large 4", addr4, transport.Tx{Data: data[:65508], Dst: peer4}, trains, transport.ErrTooBig},
		{"largest 6", addr6, transport.Tx{Data: data[:65487], Dst: peer6}, trains, nil},
		{"too large 6", addr6, transport.Tx{Data: data[:65488], Dst: peer6}, trains, transport.ErrTooBig},
		{"other family", addr6, transport.Tx{Data: data[:64], Dst: peer4}, trains, transport.ErrTx},
		{"other family", addr4, transport.Tx{Data: data[:64], Dst: peer6}, trains, transport.ErrTx},
		{"mapped", addr4, transport.Tx{Data: data[:64], Dst: netip.MustParseAddr("::ffff:192.0.2.2")}, trains, transport.ErrTx},
		{"nowhere", addr4, transport.Tx{Data: data[:64]}, trains, transport.ErrTx},
		{"unspecified", addr4, transport.Tx{Data: data[:64], Dst: netip.IPv4Unspecified()}, trains, transport.ErrTx},
		{"nothing", addr4, transport.Tx{Dst: peer4}, trains, transport.ErrTx},
		{"train", addr4, transport.Tx{Data: data[:1000], Seg: 250, Dst: peer4}, trains, nil},
		{"train of one", addr4, transport.Tx{Data: data[:64], Seg: 64, Dst: peer4}, transport.Trains{}, nil},
		{"train where there are none", addr4, transport.Tx{Data: data[:65], Seg: 64, Dst: peer4}, transport.Trains{}, transport.ErrTrainsOff},
		{"train of too many", addr4, transport.Tx{Data: data[:5], Seg: 1, Dst: peer4}, trains, transport.ErrTx},
		{"train too long", addr4, transport.Tx{Data: data[:1001], Seg: 500, Dst: peer4}, trains, transport.ErrTx},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.ErrorIs(t, transport.CheckTx(&tt.tx, tt.local, tt.trains), tt.want)
		})
	}
	good := transport.Tx{Data: data[:64], Dst: peer4}
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = transport.CheckTx(&good, addr4, trains) }))
}

// Every error says what was given and what to do, and leads to its sentinel.
func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		err  error
		is   []error
		text string
	}{
		{
			&transport.OpenError{Addr: addr4, Kind: transport.ErrInUse, Err: syscall.EADDRINUSE, Hint: "close the other"},
			[]error{transport.ErrInUse, syscall.EADDRINUSE},
			"transport: cannot open 192.0.2.1:4791: address already in use: close the other",
		},
		{
			&transport.OpenError{Addr: addr6, Err: syscall.EMFILE},
			[]error{syscall.EMFILE},
			"transport: cannot open [2001:db8::1]:4791: too many open files",
		},
		{&transport.MTUError{Dst: peer4, Bytes: 4156, MTU: 1500}, []error{transport.ErrTooBig}, "4156 bytes to 192.0.2.2, but the path takes 1500 bytes: use a smaller path MTU"},
		{&transport.MTUError{Dst: peer4, Bytes: 4156}, []error{transport.ErrTooBig}, "an unknown, smaller size"},
		{&transport.TxError{Dst: peer4, Reason: "no data"}, []error{transport.ErrTx}, "cannot send to 192.0.2.2: no data"},
		{&transport.TxError{Dst: peer4, Reason: "refused", Err: syscall.EINVAL}, []error{transport.ErrTx, syscall.EINVAL}, "refused: invalid argument"},
		{&transport.ConfigError{Field: "X.Y", Value: 7, Allowed: "1..4"}, []error{transport.ErrConfig}, "X.Y is 7, allowed: 1..4"},
	} {
		for _, want := range tt.is {
			require.ErrorIs(t, tt.err, want)
		}
		require.ErrorContains(t, tt.err, tt.text)
	}
	require.False(t, errors.Is(&transport.OpenError{Err: syscall.EMFILE}, transport.ErrInUse))
}
