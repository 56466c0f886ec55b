package engine

import (
	"net/netip"
	"testing"
	"time"

	"github.com/gohixl/hixl"
)

// Patience is how long the tests wait for what has to happen: a machine may stand
// still for seconds.
const Patience = 2 * time.Minute

func init() { waits.call, waits.autoConnect = Patience, Patience }

// GiveUpAfter has calls without a deadline wait for less until the test ends.
func GiveUpAfter(t testing.TB, d time.Duration) {
	before := waits
	t.Cleanup(func() { waits = before })
	waits.call, waits.autoConnect = d, d
}

// IdleAfter has links of engines that are opened from now on be idle sooner until the
// test ends.
func IdleAfter(t testing.TB, d time.Duration) {
	before := waits
	t.Cleanup(func() { waits = before })
	waits.idle = d
}

// Knows reports whether the engine believes that a remote one has registered the byte
// at addr.
func (e *Engine) Knows(remote string, addr uintptr) bool {
	e.mu.Lock()
	l := e.links[netip.MustParseAddrPort(remote)]
	e.mu.Unlock()
	_, _, _, ok := l.view.known(uint64(addr), 1)
	return ok
}

// ShrinkDirectory makes the engine's directory one of a few entries.
func (e *Engine) ShrinkDirectory(entries int) error {
	return e.dir.open(e.c, entries)
}

// Guests counts the links that others have made.
func (e *Engine) Guests() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sweep()
	return len(e.guests)
}

// ForgeDirectory publishes bytes in place of the engine's directory.
func (e *Engine) ForgeDirectory(b []byte) error {
	r, err := e.c.Register(b, hixl.LocalWrite|hixl.RemoteRead|hixl.RemoteAtomic)
	if err != nil {
		return err
	}
	return e.c.Publish(dirName, r)
}
