//go:build linux

package matrix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gohixl/hixl/interop/tshark"
)

// tsharkBatch is how many packets one tshark sees: it keeps something of each.
const tsharkBatch = 100000

// decode compares the captures that wait with what tshark makes of them, and
// removes them.
func (b *Bench) decode(ctx context.Context) error {
	captures := b.captures
	b.captures, b.packets = nil, 0
	if len(captures) == 0 {
		return nil
	}
	r, err := tshark.Compare(ctx, captures...)
	b.decoded.Packets += r.Packets
	b.decoded.Differences = append(b.decoded.Differences, r.Differences...)
	if err != nil || len(r.Differences) > 0 || b.Keep {
		return err // they are worth a look
	}
	for _, c := range captures {
		if !b.keep[c] {
			err = errors.Join(err, os.Remove(c))
		}
	}
	return err
}

// decodeRest is the last cell.
func (b *Bench) decodeRest(ctx context.Context) Outcome {
	o := Outcome{
		Case: "tshark decodes every packet on the bridge as hixl does", Role: None, Peer: b.peer(), Status: Pass, group: "Packets",
	}
	start := time.Now()
	err := errors.Join(b.failed, b.decode(ctx))
	o.took = time.Since(start)
	o.Detail = fmt.Sprintf("%d packets, %d fields that differ", b.decoded.Packets, len(b.decoded.Differences))
	if err != nil || len(b.decoded.Differences) > 0 {
		o.Status = Fail
		o.Detail = join(o.Detail, strings.Join(b.decoded.Differences, "; "))
		if err != nil {
			o.Detail = join(o.Detail, err.Error())
		}
	}
	return o
}
