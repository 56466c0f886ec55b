package bench

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// maxCore is the number of cores that a set holds.
const maxCore = 1024

// placement is where the two processes of a run on one machine are held: each
// on its own half of the cores, so that the system's scheduler, which may put both
// on one core or not, does not decide what is measured. nil: wherever they like.
type placement struct{ here, there []int }

// place chooses the halves, nil when there is nothing to hold apart.
func (c *Config) place() *placement {
	if !c.Pin || c.InProcess || c.Peer != "" {
		return nil
	}
	return halve(allowedCores())
}

// halve splits cores; of an odd number the last is left out.
func halve(cores []int) *placement {
	half := len(cores) / 2
	if half == 0 {
		return nil
	}
	return &placement{here: cores[:half], there: cores[half : 2*half]}
}

// pin holds this process on its half until undo is called, which is to be done
// when the processes of the run are gone.
func (c *Config) pin() (undo func(), err error) {
	if c.placed = c.place(); c.placed == nil {
		return func() {}, nil
	}
	before, procs := allowedCores(), runtime.GOMAXPROCS(0)
	if err := holdOn(c.placed.here); err != nil {
		return nil, err
	}
	return func() {
		_ = holdOn(before) // they were allowed before
		runtime.GOMAXPROCS(procs)
	}, nil
}

// holdOn holds this process on some cores, and Go's scheduler to their number.
func holdOn(cores []int) error {
	if err := setCores(cores); err != nil {
		return err
	}
	runtime.GOMAXPROCS(len(cores))
	return nil
}

// peer is the half of the peer's process, nil for anywhere.
func (p *placement) peer() []int {
	if p == nil {
		return nil
	}
	return p.there
}

// lists is both halves in text, this process's first.
func (p *placement) lists() []string {
	if p == nil {
		return nil
	}
	return []string{coreList(p.here), coreList(p.there)}
}

// pinnedTo is what is said of a run's two processes.
func pinnedTo(lists []string) string {
	if len(lists) == 0 {
		return ""
	}
	return ", pinned to cores " + strings.Join(lists, " and ")
}

// coreList writes ascending numbers as 0-3,8.
func coreList(cores []int) string {
	var out []string
	for rest := slices.Clone(cores); len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n] == rest[0]+n {
			n++
		}
		s := strconv.Itoa(rest[0])
		if n > 1 {
			s += "-" + strconv.Itoa(rest[n-1])
		}
		out, rest = append(out, s), rest[n:]
	}
	return strings.Join(out, ",")
}
