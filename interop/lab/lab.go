//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/gohixl/hixl/interop/bridge"
)

// Addresses of this process's host in the lab.
const (
	Host4 = "10.78.0.1"
	Host6 = "fd78::1"
	// HostPort is its port of the switch; guests have their names.
	HostPort = "host"
)

// Limits of [Options].
const (
	MaxGuests  = 8
	DefaultMTU = 4200 // the packets of the largest path MTU, 4096, fit
)

// Options describe a lab.
type Options struct {
	Guests int    // 1 to MaxGuests, default 2
	MTU    int    // of the network in bytes, 576 to 9000, default DefaultMTU
	Dir    string // for the guests' consoles; see [Image.Claim]
}

// Lab is a running lab: guests, and this host, on a switch.
type Lab struct {
	Image  *Image
	Guests []*Guest
	Switch *bridge.Switch
	MTU    int
	// BootTime is how long it took.
	BootTime time.Duration
	// Reboots are why guests had to be started more than once, while they boot.
	Reboots []error

	dir   string
	close sync.Once
	err   error
}

// ErrBoot is what failures to start a lab unwrap to.
var ErrBoot = errors.New("lab: boot")

func (o *Options) resolve() error {
	if o.Guests == 0 {
		o.Guests = 2
	}
	if o.MTU == 0 {
		o.MTU = DefaultMTU
	}
	if !Inside() {
		return fmt.Errorf("%w: only inside the namespaces of Reexec", ErrBoot)
	}
	if err := o.limits(); err != nil {
		return err
	}
	return os.MkdirAll(o.Dir, 0o755)
}

func (o *Options) limits() error {
	switch {
	case o.Guests < 0 || o.Guests > MaxGuests:
		return fmt.Errorf("%w: %d guests; 1 to %d are allowed", ErrBoot, o.Guests, MaxGuests)
	case o.Dir == "":
		return fmt.Errorf("%w: no folder for consoles", ErrBoot)
	case o.MTU != 0 && (o.MTU < 576 || o.MTU > 9000):
		return fmt.Errorf("%w: MTU %d; 576 to 9000 are allowed", ErrBoot, o.MTU)
	}
	return nil
}

// Boot starts guests and returns when each of them answers. It may be called once
// in a process.
func Boot(ctx context.Context, img *Image, o Options) (*Lab, error) {
	if err := o.resolve(); err != nil {
		return nil, err
	}
	start := time.Now()
	l := &Lab{Image: img, Switch: bridge.New(), MTU: o.MTU, dir: o.Dir}
	if err := l.boot(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrBoot, err), l.Close())
	}
	l.BootTime = time.Since(start)
	return l, nil
}

func (l *Lab) boot(ctx context.Context, o Options) error {
	if err := prepareNamespace(); err != nil {
		return err
	}
	tap, err := openTap(hostDevice)
	if err != nil {
		return err
	}
	if err := l.Switch.Attach(HostPort, tap); err != nil {
		return errors.Join(err, tap.Close())
	}
	if err := configure(ctx, o.MTU); err != nil {
		return err
	}
	for i := range o.Guests {
		g := newGuest(l, i+1)
		if err := g.start(); err != nil {
			return fmt.Errorf("%s: %w", g.Name, err)
		}
		l.Guests = append(l.Guests, g)
	}
	for _, g := range l.Guests {
		if err := g.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Capture records all RoCE packets of the lab in a file until the next call, an
// empty path ends it.
func (l *Lab) Capture(path string) error {
	if path == "" {
		return l.Switch.StopCapture()
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return l.Switch.Capture(f)
}

// Close ends the guests and the switch. Closing twice is fine.
func (l *Lab) Close() error {
	l.close.Do(func() {
		for _, g := range l.Guests {
			g.Kill()
		}
		l.err = l.Switch.Close()
	})
	return l.err
}
