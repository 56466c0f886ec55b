//go:build linux

package matrix

import (
	"context"
	"fmt"
	"strings"

	"github.com/gohixl/hixl/interop/bridge"
	"github.com/gohixl/hixl/roce"
)

// Tools of rdma_rxe on both ends, and of ours on one. The command lines of ours
// are in one place, at the end of this file.

// toolCell makes cells of a pair of tools.
func toolCell(group, name string, family int, t Tool) Cell {
	if family == 6 {
		name += ", IPv6"
	}
	return Cell{Name: name, Group: group, Family: family, Tool: &t}
}

// withHarm is the cell over a bridge that does harm.
func withHarm(c Cell, h bridge.Faults) Cell {
	c.Name += ", " + h.String()
	c.Group += " with " + h.String()
	c.Faults = h
	c.Smoke = false
	return c
}

// asLab makes a cell with rdma_rxe on both ends.
func asLab(c Cell) Cell {
	c.Roles, c.Group = []Role{None}, "The lab itself"
	c.Name += ", both ends rdma_rxe"
	return c
}

// labCells show that stock tools on two guests, and the bridge's harm to them,
// behave as they should without anything of ours.
func labCells() []Cell {
	var cells []Cell
	rc := asLab(pingpong("rc", 4))
	rc.Smoke = true
	cells = append(cells, rc, asLab(pingpong("uc", 4)), asLab(pingpong("ud", 4)), asLab(rping(4)), asLab(rping(6)), asLab(ucmatose(4)))
	for _, test := range []string{"write_bw", "read_bw", "send_bw", "atomic_bw", "write_lat"} {
		cells = append(cells, asLab(perftest(test, 4, "-s 4097", "-n 100")))
	}
	cells = append(cells, asLab(perftest("write_bw", 4, "-R", "-n 100")))
	for _, h := range harms {
		for _, c := range []Cell{perftest("write_bw", 4, "-s 4097", enough(h, 200)), rpings(4, rounds(h))} {
			lab := asLab(withHarm(c, h))
			lab.Group = "The lab itself"
			cells = append(cells, lab)
		}
	}
	verbs := verbsCell("The lab itself", "op=write size=5001 count=3", 4)
	verbs.Name += ", both ends rdma_rxe"
	verbs.Roles = []Role{None}
	return append(cells, verbs)
}

func pingpongCells() []Cell {
	var cells []Cell
	for _, kind := range []string{"rc", "uc", "ud"} {
		for _, family := range []int{4, 6} {
			c := pingpong(kind, family)
			c.Smoke = kind == "rc" && family == 4
			cells = append(cells, c)
		}
	}
	return cells
}

// pingpong is ibv_*_pingpong; -c checks what arrives.
func pingpong(kind string, family int) Cell {
	theirs := fmt.Sprintf("ibv_%s_pingpong -d rxe0 -g {gid} -n 200 -c", kind)
	ours := ourLine("pingpong", kind+" -n 200 -c")
	if kind == "ud" {
		theirs += " -s 1024"
		ours += " -s 1024"
	}
	return toolCell("libibverbs pingpongs", fmt.Sprintf("ibv_%s_pingpong", kind), family, Tool{
		Ready: "tcp", Says: `\d+ iters in`, ServerSays: `\d+ iters in`,
		Theirs: withPeer(theirs), Ours: withPeer(ours),
	})
}

// perftestCells: all tests, path MTUs, sizes, and the options that change the
// exchange.
func perftestCells() []Cell {
	var cells []Cell
	add := func(smoke bool, test string, family int, options ...string) {
		c := perftest(test, family, options...)
		c.Smoke = smoke
		cells = append(cells, c)
	}
	for _, test := range []string{"write_bw", "write_lat", "read_bw", "read_lat", "send_bw", "send_lat"} {
		for _, mtu := range []string{"256", "1024", "4096"} {
			for _, size := range []string{"1", "4097", "65536", "1048576"} {
				n := "-n 50"
				if size == "1048576" {
					n = "-n 5"
				}
				add(false, test, 4, "-m "+mtu, "-s "+size, n)
			}
		}
		add(strings.HasSuffix(test, "_bw"), test, 4, "-s 2001", "-n 100")
		add(false, test, 6, "-s 2001", "-n 100")
		add(false, test, 4, "-a", "-n 5")
		add(false, test, 4, "-R", "-s 2001", "-n 100")
	}
	for _, test := range []string{"write_bw", "read_bw", "send_bw"} {
		add(false, test, 4, "-q 4", "-s 2001", "-n 100")
		add(false, test, 4, "-b", "-s 2001", "-n 100")
		add(false, test, 4, "-b", "-q 2", "-R", "-s 2001", "-n 100")
	}
	for _, kind := range []string{"FETCH_AND_ADD", "CMP_AND_SWAP"} {
		for _, test := range []string{"atomic_bw", "atomic_lat"} {
			add(test == "atomic_bw", test, 4, "-A "+kind, "-n 100")
			add(false, test, 6, "-A "+kind, "-n 100")
			add(false, test, 4, "-A "+kind, "-R", "-n 100")
		}
	}
	for _, service := range []string{"UD", "UC"} {
		for _, family := range []int{4, 6} {
			add(false, "send_bw", family, "-c "+service, "-s 1000", "-n 100")
			add(false, "send_lat", family, "-c "+service, "-s 1000", "-n 100")
		}
	}
	for _, family := range []int{4, 6} {
		add(false, "write_bw", family, "-c UC", "-s 1000", "-n 100")
		add(false, "write_lat", family, "-c UC", "-s 1000", "-n 100")
	}
	for _, options := range []string{"-s 1000", "-s 1000 -q 4", "-s 1000 -b", "-s 1000 -b -q 2", "-a"} {
		add(false, "send_bw", 4, "-R -c UD", "-n 100", options)
	}
	add(false, "send_lat", 4, "-R -c UD", "-n 100", "-s 1000")
	cells = append(cells, refusals()...)
	for _, test := range []string{"write_bw", "read_bw", "send_bw", "atomic_bw", "write_lat", "read_lat", "send_lat", "atomic_lat"} {
		add(false, test, 4, "-D 1")
	}
	for _, test := range []string{"write_bw", "send_bw"} {
		add(false, test, 4, "-I 100", "-s 100", "-n 100")
		add(false, test, 4, "-t 16 -Q 4", "-s 2001", "-n 100")
		add(false, test, 4, "-R -T 32", "-s 2001", "-n 100")
		add(false, test, 4, "-b -D 1", "-s 2001")
		add(false, test, 4, "-b -a -n 5")
	}
	add(false, "read_bw", 4, "-o 4", "-s 2001", "-n 100")
	add(false, "send_bw", 4, "-r 16 -t 16", "-s 2001", "-n 100")
	add(false, "send_bw", 4, "-c UD -b -q 2", "-s 1000", "-n 100")
	add(false, "send_bw", 4, "-c UC -b", "-s 1000", "-n 100")
	add(false, "atomic_bw", 4, "-q 4", "-n 100")
	add(false, "atomic_bw", 4, "-b -q 2 -R", "-n 100")
	for _, h := range harms {
		for _, test := range []string{"write_bw", "read_bw", "send_bw"} {
			cells = append(cells, withHarm(perftest(test, 4, enough(h, 100), "-s 16001"), h))
		}
		cells = append(cells, withHarm(perftest("atomic_bw", 4, enough(h, 1000)), h))
	}
	return cells
}

// refusals: what perftest cannot do, and what either end then says.
func refusals() []Cell {
	// It resolves names to IPv4 only, and listens there, whatever --ipv6 says of GIDs.
	six := perftest("write_bw", 6, "-R")
	six.Name = "ib_write_bw -R over IPv6, which perftest cannot"
	six.Tool.Theirs.Server += " --ipv6"
	six.Tool.Theirs.Client = strings.Replace(six.Tool.Theirs.Client, "{peer}", "--ipv6 {peer}", 1)
	six.Tool.Fails = true
	six.Tool.Says = `resolving basic address|(?i)rejected`
	const noUC = `UC is not supported in librdmacm`
	return []Cell{six, {
		Name: "ib_send_bw -R -c UC, which perftest refuses", Group: "perftest", Roles: []Role{Client, None},
		Do: func(ctx context.Context, b *Bench, role Role) (string, error) {
			tool := &Tool{
				Fails:  true,
				Theirs: Ends{Client: "ib_send_bw -d rxe0 -x {gid} -F -R -c UC {peer}"},
				Ours:   Ends{Client: ourLine("perf", "send_bw -R -c UC {peer}")},
			}
			peer, at := b.hosts(&Cell{}, Client)
			if role == None {
				peer, at = at, peer
			}
			p, err := b.start(ctx, &Cell{Tool: tool}, at, peer, Client)
			if err != nil {
				return "", err
			}
			said, err := p.Wait()
			if err := tool.judge("client", said, err, noUC); err != nil {
				return "", err
			}
			return result(said, noUC), nil
		},
	}}
}

// enough is perftest's option for so many messages, or as many as rare faults
// need.
func enough(h bridge.Faults, n int) string {
	if h.Corrupt > 0 {
		n = 3000
	}
	return fmt.Sprintf("-n %d", n)
}

// rounds is the same for rping, which waits for many timeouts when packets are
// lost.
func rounds(h bridge.Faults) int {
	switch {
	case h.Corrupt > 0:
		return 300
	case h.Loss >= 0.05:
		return 6
	}
	return 60
}

// perftest is a test of perftest, ib_TEST; both ends get the same options.
func perftest(test string, family int, options ...string) Cell {
	flags := strings.Join(options, " ")
	if strings.HasPrefix(test, "atomic") { // its size is 8
		kept := options[:0:0]
		for _, o := range options {
			if !strings.HasPrefix(o, "-s ") {
				kept = append(kept, o)
			}
		}
		flags = strings.Join(kept, " ")
	}
	ours := strings.ReplaceAll(flags, "-A ", "--atomic-type ")
	lines := withPeer
	if strings.Contains(flags, "-R") {
		lines = func(line string) Ends { return Ends{Server: line, Client: line + " {peer}"} }
	}
	ready := "tcp"
	if strings.Contains(flags, "-R") {
		ready = "cm"
	}
	// User-mode Linux's clock fools perftest about the processor's, and its figures
	// with it.
	const figure = ` +([0-9.]+|inf|-?nan)`
	says := `(?m)^ *\d+ +\d+` + figure + figure
	return toolCell("perftest", strings.TrimSpace("ib_"+test+" "+flags), family, Tool{
		Ready: ready, Says: says, Slow: fmt.Sprintf(" -u %d", slowTimeout),
		Theirs: lines("ib_" + test + " -d rxe0 -x {gid} -F " + flags),
		Ours:   lines(ourLine("perf", test+" "+ours)),
	})
}

// cmCells: connections made by RDMA CM.
func cmCells() []Cell {
	var cells []Cell
	for _, family := range []int{4, 6} {
		c := rping(family)
		c.Smoke = family == 4
		cells = append(cells, c, ucmatose(family))
	}
	for _, h := range harms {
		for _, family := range []int{4, 6} {
			cells = append(cells, withHarm(rpings(family, rounds(h)), h))
		}
		if h.Corrupt == 0 { // it sends too little to be hit by that
			cells = append(cells, withHarm(ucmatoses(6, 20), h))
		}
	}
	for _, family := range []int{4, 6} {
		for _, l := range []struct {
			what      string
			attribute uint16
		}{{"connection request", cmREQ}, {"reply", cmREP}, {"disconnection request", cmDREQ}} {
			c := rping(family)
			c.Name += ", the first " + l.what + " lost"
			c.Drop = []bridge.Rule{{Match: management(l.attribute), Count: 1}}
			if l.attribute == cmDREQ { // rping's client exits after it, and the kernel does not ask again
				c.Roles = []Role{Client}
			}
			cells = append(cells, c)
		}
	}
	for _, attribute := range []uint16{cmSIDRREQ, cmSIDRREP} {
		c := perftest("send_bw", 4, "-R -c UD", "-s 1000", "-n 100")
		c.Name += map[uint16]string{cmSIDRREQ: ", the first SIDR_REQ lost", cmSIDRREP: ", the first SIDR_REP lost"}[attribute]
		c.Group = "RDMA CM"
		c.Drop = []bridge.Rule{{Match: management(attribute), Count: 1}}
		cells = append(cells, c)
	}
	nobody := rping(4)
	nobody.Name = "rping to a port that nobody listens on"
	nobody.Tool.Theirs.Server += " -p 7999"
	nobody.Tool.Ours.Server += " -p 7999"
	nobody.Tool.Fails = true
	nobody.Tool.Says = `(?i)reject\S*,? (error|reason)? ?\S*`
	dies := Cell{Name: "rping whose other end is killed", Group: "RDMA CM", Do: rpingDies}
	return append(cells, nobody, dies)
}

// Attribute IDs of connection management messages.
const (
	cmREQ     = 0x0010
	cmREP     = 0x0013
	cmDREQ    = 0x0015
	cmSIDRREQ = 0x0017
	cmSIDRREP = 0x0018
)

// management matches messages to QP 1 with an attribute ID.
func management(attribute uint16) func(*roce.Packet) bool {
	const at = 16 // in a management datagram
	return func(p *roce.Packet) bool {
		return p.DestQP == 1 && len(p.Payload) >= at+2 && uint16(p.Payload[at])<<8|uint16(p.Payload[at+1]) == attribute
	}
}

func rping(family int) Cell { return rpings(family, 10) }

// rpings is rping with so many rounds; -v prints the data, -V verifies it.
func rpings(family, rounds int) Cell {
	options := fmt.Sprintf(" -C %d -S 1000 -v -V", rounds)
	return toolCell("RDMA CM", "rping", family, Tool{
		Ready: "cm", Says: fmt.Sprintf("rdma-ping-%d", rounds-1),
		Theirs: Ends{Server: "rping -s -a {self}" + options, Client: "rping -c -a {peer}" + options},
		Ours:   Ends{Server: ourLine("rping", "-s -a {self}"+options), Client: ourLine("rping", "-c -a {peer}"+options)},
	})
}

func ucmatose(family int) Cell { return ucmatoses(family, 10) }

// ucmatoses is ucmatose with so many messages on each of its connections.
func ucmatoses(family, messages int) Cell {
	options := fmt.Sprintf(" -c 4 -C %d -S 1000", messages)
	theirs := Ends{Server: "ucmatose -b {self}" + options, Client: "ucmatose -b {self} -s {peer}" + options}
	if family == 6 {
		theirs.Server += " -f ip6"
		theirs.Client += " -f ip6"
	}
	return toolCell("RDMA CM", "ucmatose", family, Tool{
		Ready: "cm", Says: "return status 0", ServerSays: "return status 0",
		Theirs: theirs,
		Ours:   Ends{Server: ourLine("ucmatose", "-b {self}"+options), Client: ourLine("ucmatose", "-b {self} -s {peer}"+options)},
	})
}

// withPeer is a line whose client names the server at the end: by its IPv4
// address where TCP is spoken, since the originals listen on no other.
func withPeer(line string) Ends { return Ends{Server: line, Client: line + " {tcp}"} }

// ourLine is a line of ours, on the address of the cell's family.
func ourLine(command, options string) string { return command + " " + options + " --local {self}" }
