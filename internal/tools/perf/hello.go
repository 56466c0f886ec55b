package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/roce"
)

// What the first steps of the exchange say.
const (
	version    = "6.06" // of Debian 12's perftest
	versionLen = 16
	// minVersion is the oldest that perftest itself still talks to.
	minVersion = 5.70
	// Sizes of a page, through which small messages cycle, and of a cache line,
	// which is the least distance between them. The larger of both ends' counts.
	pageSize  = 4096
	cacheLine = 64
	maxPage   = 1 << 20
	maxLine   = 4096
)

// terms are what both ends agree on before they make anything.
type terms struct {
	page, line int
	mtu        int // bytes
}

// hello runs the steps before the addresses. mtu is the largest path MTU here.
func (c *control) hello(ctx context.Context, mtu int) (t terms, err error) {
	if err := c.swapVersion(ctx); err != nil {
		return t, err
	}
	if t.page, err = c.swapSize(ctx, "page size", pageSize, maxPage); err != nil {
		return t, err
	}
	if t.line, err = c.swapSize(ctx, "cache line size", cacheLine, maxLine); err != nil {
		return t, err
	}
	if t.line > t.page/2 {
		return t, c.misunderstood("cache line size", fmt.Errorf("a line of %d bytes in a page of %d", t.line, t.page))
	}
	t.mtu, err = c.swapMTU(ctx, mtu)
	return t, err
}

func (c *control) swapVersion(ctx context.Context) error {
	const step = "version"
	mine, theirs := make([]byte, versionLen), make([]byte, versionLen)
	copy(mine, version)
	if err := c.swap(ctx, step, mine, theirs); err != nil {
		return err
	}
	text, _, _ := strings.Cut(string(theirs), "\x00")
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return c.misunderstood(step, fmt.Errorf("%q is no version of perftest", theirs))
	}
	if !(v >= minVersion) { // nor is NaN
		return c.misunderstood(step, fmt.Errorf("it is of version %s, and exchanges what %.2f and later do not understand", text, minVersion))
	}
	return nil
}

// swapSize agrees on the larger of both ends' sizes, a power of two.
func (c *control) swapSize(ctx context.Context, step string, mine, limit uint32) (int, error) {
	m, t := binary.BigEndian.AppendUint32(nil, mine), make([]byte, 4)
	if err := c.swap(ctx, step, m, t); err != nil {
		return 0, err
	}
	v := binary.BigEndian.Uint32(t)
	if v == 0 || v > limit || v&(v-1) != 0 {
		return 0, c.misunderstood(step, fmt.Errorf("%d is no power of two up to %d", v, limit))
	}
	return int(max(mine, v)), nil
}

// swapMTU agrees on the smaller of both ends' path MTUs, each an ASCII digit of
// enum ibv_mtu and a NUL.
func (c *control) swapMTU(ctx context.Context, mtu int) (int, error) {
	const step = "path MTU"
	m, err := roce.PathMTUFor(mtu)
	if err != nil {
		return 0, err
	}
	theirs := make([]byte, 2)
	if err := c.swap(ctx, step, []byte{'0' + byte(m), 0}, theirs); err != nil {
		return 0, err
	}
	if theirs[0] < '1' || theirs[0] > '5' || theirs[1] != 0 {
		return 0, c.misunderstood(step, fmt.Errorf("%q is no digit 1 to 5", theirs))
	}
	return min(mtu, roce.PathMTU(theirs[0]-'0').Bytes()), nil
}

// errAgain is why the second round of addresses is refused.
var errAgain = errors.New("another queue pair than in the first round")

// swapDests runs a round of addresses, one for each queue pair. known, if not
// nil, is what the peer said in an earlier one.
func (c *control) swapDests(ctx context.Context, mine, known []dest) ([]dest, error) {
	theirs := make([]dest, len(mine))
	for i := range mine {
		step := fmt.Sprintf("address %d of %d", i+1, len(mine))
		d, err := c.swapDest(ctx, step, &mine[i])
		if err != nil {
			return nil, err
		}
		if known != nil && known[i].qpn != d.qpn {
			return nil, &tools.ExchangeError{Peer: c.link.Peer(), Step: step, Problem: "not understood", Err: errAgain}
		}
		theirs[i] = d
	}
	return theirs, nil
}
