package bench

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/gohixl/hixl/roce"
)

// randomSeed picks a seed that a person can type again.
func randomSeed() uint64 { return uint64(rand.Uint32()) + 1 }

// Validate refuses what cannot work, with a *FlagError.
func (c Config) Validate() error {
	c = c.withDefaults()
	for _, check := range []func() error{
		c.validateLists, c.validateTime, c.validateRegion, c.Faults.validate, c.validatePeer,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) validateLists() error {
	if err := checkMemory("memory", c.Memory); err != nil {
		return err
	}
	for _, op := range c.Ops {
		if op >= opCount {
			return &FlagError{Flag: "op", Given: fmt.Sprint(uint8(op)), Allowed: "0 to 5", Do: "use the Op constants"}
		}
	}
	for _, n := range []struct {
		flag    string
		values  []int
		min     int
		max     int
		zero    bool
		allowed string
	}{
		{"size", c.Sizes, 1, MaxMessage, false, "1 to 1GiB"},
		{"qps", c.QPs, 1, MaxQPs, false, fmt.Sprintf("1 to %d", MaxQPs)},
		{"depth", c.Depths, 1, MaxDepth, true, fmt.Sprintf("1 to %d, or 0 to choose by size", MaxDepth)},
	} {
		for _, v := range n.values {
			if ok := v >= n.min && v <= n.max || n.zero && v == 0; !ok {
				return &FlagError{Flag: n.flag, Given: fmt.Sprint(v), Allowed: n.allowed, Do: "give a number in that range"}
			}
		}
	}
	return c.validateMTUs()
}

func (c Config) validateMTUs() error {
	for _, m := range c.MTUs {
		if m == 0 {
			continue
		}
		if _, err := roce.PathMTUFor(m); err != nil || !slices.Contains([]int{256, 512, 1024, 2048, 4096}, m) {
			return &FlagError{
				Flag: "mtu", Given: fmt.Sprint(m), Allowed: "256, 512, 1024, 2048 or 4096 bytes of payload a packet, or 0 for the largest that fits",
				Do: "give one or several of them",
			}
		}
	}
	return nil
}

func (c Config) validateTime() error {
	if c.Duration < time.Millisecond || c.Duration > time.Hour {
		return &FlagError{Flag: "duration", Given: c.Duration.String(), Allowed: "1ms to 1h", Do: "give the timed part of one cell over all rounds, such as 500ms"}
	}
	if c.Rounds < 1 || c.Rounds > MaxRounds {
		return &FlagError{Flag: "rounds", Given: fmt.Sprint(c.Rounds), Allowed: fmt.Sprintf("1 to %d", MaxRounds), Do: "give how often each cell is measured; 7 or more for ratios to rely on"}
	}
	if c.Passes < 0 || c.Passes > MaxRounds {
		return &FlagError{Flag: "passes", Given: fmt.Sprint(c.Passes), Allowed: fmt.Sprintf("1 to %d", MaxRounds), Do: "give how often all goals are gone through; 2 tell what lasts from what passes"}
	}
	return nil
}

func (c Config) validateRegion() error {
	if c.Region < slotAlign || c.Region > MaxRegion {
		return &FlagError{Flag: "region", Given: formatSize(c.Region), Allowed: "64 to 4GiB", Do: "give the length of the buffer that transfers walk through"}
	}
	for _, cell := range c.cells() {
		if _, err := cell.layout(c.Region); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) validatePeer() error {
	if c.Peer != "" {
		if c.InProcess {
			return &FlagError{Flag: "in-process", Given: "with --peer " + c.Peer, Allowed: "one of the two", Do: "leave one out"}
		}
		if c.PeerLocal.IsValid() {
			return &FlagError{Flag: "local", Given: c.Local.String() + "," + c.PeerLocal.String(), Allowed: "one address with --peer", Do: "give the other one to the peer, as --local there"}
		}
		return nil
	}
	return validateAddresses(c.Local, c.PeerLocal)
}

// validateAddresses checks the addresses of two NICs on one machine.
func validateAddresses(a, b netip.Addr) error {
	given := fmt.Sprintf("%v,%v", a, b)
	if a.Unmap() == b.Unmap() {
		return &FlagError{Flag: "local", Given: given, Allowed: "two different addresses: both NICs own UDP port 4791", Do: "give two addresses of this machine, such as 127.0.0.1,127.0.0.2"}
	}
	if !a.IsValid() || !b.IsValid() || a.Is4() != b.Is4() {
		return &FlagError{Flag: "local", Given: given, Allowed: "two addresses of one family", Do: "give two addresses of this machine, such as 127.0.0.1,127.0.0.2"}
	}
	return nil
}

// validate refuses what a peer may not ask for.
func (c cell) validate() error {
	cfg := Config{Ops: []Op{c.Op}, Sizes: []int{c.Size}, QPs: []int{c.QPs}, Depths: []int{c.Depth}, MTUs: []int{c.MTU}}
	if c.Depth == 0 {
		return &FlagError{Flag: "depth", Given: "0", Allowed: fmt.Sprintf("1 to %d", MaxDepth), Do: "choose it before asking a peer"}
	}
	if c.List < 0 || c.List > c.Depth {
		return &FlagError{Flag: "depth", Given: fmt.Sprintf("%d with lists of %d", c.Depth, c.List), Allowed: "a list or more", Do: "post shorter lists"}
	}
	return cfg.validateLists()
}
