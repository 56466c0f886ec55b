//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gohixl/hixl/interop/agent"
	"github.com/gohixl/hixl/interop/bridge"
)

const (
	agentPort = "7800"
	bootLimit = 3 * time.Minute // an emulated machine beside other work needs a quarter of one
	bootTries = 3               // an emulator may hang
	bootPoll  = 20 * time.Millisecond
	dialLimit = 2 * time.Second
)

// Guest is a machine of the lab with the RDMA device rxe0.
type Guest struct {
	Name string // vm1, vm2, ...
	IPv4 netip.Addr
	IPv6 netip.Addr

	lab     *Lab
	number  int
	client  *agent.Client
	console string
	cmd     *exec.Cmd
	ended   chan struct{}
}

func newGuest(l *Lab, number int) *Guest {
	g := &Guest{
		Name:   fmt.Sprintf("vm%d", number),
		IPv4:   netip.AddrFrom4([4]byte{10, 78, 0, byte(10 + number)}),
		IPv6:   netip.MustParseAddr(fmt.Sprintf("fd78::%d", 10+number)),
		lab:    l,
		number: number,
	}
	g.console = filepath.Join(l.dir, g.Name+".console")
	g.client = &agent.Client{Dial: func(ctx context.Context) (net.Conn, error) {
		d := net.Dialer{}
		return d.DialContext(ctx, "tcp", net.JoinHostPort(g.IPv4.String(), agentPort))
	}}
	return g
}

// start launches the machine.
func (g *Guest) start() error {
	ours, theirs, err := cable()
	if err != nil {
		return err
	}
	defer theirs.Close()
	if err := g.lab.Switch.Attach(g.Name, ours); err != nil {
		return errors.Join(err, ours.Close())
	}
	console, err := os.Create(g.console)
	if err != nil {
		return err
	}
	defer console.Close()
	if g.lab.Image.Backend == UML {
		g.cmd = g.umlCommand()
	} else {
		g.cmd = g.qemuCommand()
	}
	g.cmd.Stdout, g.cmd.Stderr = console, console
	g.cmd.ExtraFiles = []*os.File{theirs} // number 3 there
	if err := g.cmd.Start(); err != nil {
		return err
	}
	g.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // it is killed, or its console says why it ended
		close(ended)
	}(g.cmd, g.ended)
	return nil
}

// parameters are the guest's part of the kernel's command line.
func (g *Guest) parameters(device string) []string {
	return []string{
		"panic=-1", "lab.name=" + g.Name, "lab.dev=" + device, "lab.port=" + agentPort,
		"lab.ip4=" + g.IPv4.String(), "lab.ip6=" + g.IPv6.String(),
	}
}

func (g *Guest) mac() string { return fmt.Sprintf("02:78:00:00:00:%02x", 10+g.number) }

func (g *Guest) umlCommand() *exec.Cmd {
	img := g.lab.Image
	args := append([]string{
		"mem=512M", "quiet", "con=null", "con0=null,fd:1", "initrd=" + img.Initramfs,
		fmt.Sprintf("vec0:transport=fd,fd=3,mac=%s,mtu=%d,depth=128", g.mac(), g.lab.MTU),
	}, g.parameters("vec0")...)
	cmd := exec.Command(img.Kernel, args...)
	cmd.Env = append(os.Environ(), "HOME="+g.lab.dir) // it keeps a folder there
	return cmd
}

// qemuCommand emulates a processor that has the instructions which the kernel
// uses for checksums. All offloads are off: what crosses the bridge is what would
// be on a wire.
func (g *Guest) qemuCommand() *exec.Cmd {
	img := g.lab.Image
	const offloads = "csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ufo=off,host_tso4=off,host_tso6=off,host_ufo=off"
	kernel := append([]string{
		"console=ttyS0", "quiet", "mitigations=off", "cryptomgr.notests", "nowatchdog",
	}, g.parameters("eth0")...)
	return exec.Command("qemu-system-x86_64",
		"-name", g.Name, "-machine", "q35,vmport=off", "-accel", "tcg,thread=multi", "-cpu", "Nehalem",
		"-smp", "2", "-m", "768", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio",
		"-kernel", img.Kernel, "-initrd", img.Initramfs, "-append", strings.Join(kernel, " "),
		"-netdev", "dgram,id=n0,local.type=fd,local.str=3",
		"-device", fmt.Sprintf("virtio-net-pci,netdev=n0,mac=%s,host_mtu=%d,romfile=,%s", g.mac(), g.lab.MTU, offloads),
		"-device", "virtio-rng-pci")
}

// await returns when the guest is ready. One that does not get there is started
// again.
func (g *Guest) await(ctx context.Context) error {
	err := g.ready(ctx)
	for n := 1; n < bootTries && err != nil && ctx.Err() == nil; n++ {
		g.lab.Reboots = append(g.lab.Reboots, err)
		if err = g.stop(); err == nil {
			err = g.start()
		}
		if err == nil {
			err = g.ready(ctx)
		}
	}
	return err
}

// ready returns when the guest's agent answers and its RDMA device is there.
func (g *Guest) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bootLimit)
	defer cancel()
	for {
		select {
		case <-g.ended:
			return g.complain("it ended")
		case <-ctx.Done():
			return errors.Join(g.complain("it does not answer"), ctx.Err())
		case <-time.After(bootPoll):
		}
		once, cancel := context.WithTimeout(ctx, dialLimit)
		conn, err := g.client.Dial(once)
		cancel()
		if err == nil {
			_ = conn.Close()
			break
		}
	}
	if _, err := g.Run(ctx, "test -e /sys/class/infiniband/rxe0"); err != nil {
		return errors.Join(g.complain("it has no rxe0"), err)
	}
	return nil
}

// complain is an error with the end of what the console shows.
func (g *Guest) complain(what string) error {
	return fmt.Errorf("%w: %s: %s; its console ends: %s", ErrBoot, g.Name, what, g.Console(12))
}

// Console returns the last lines of the machine's console.
func (g *Guest) Console(lines int) string {
	text, err := os.ReadFile(g.console)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(text), lines)
}

// Run runs a shell command in the guest to its end. The error is an
// *[agent.ExitError] when it failed.
func (g *Guest) Run(ctx context.Context, command string) (agent.Result, error) {
	return g.client.Run(ctx, command)
}

// Start runs a shell command in the guest and returns while it runs; it is killed
// when ctx ends.
func (g *Guest) Start(ctx context.Context, command string) (*agent.Process, error) {
	return g.client.Start(ctx, command)
}

// Put copies a file of this host into the guest, with its permissions.
func (g *Guest) Put(ctx context.Context, from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return g.client.Put(ctx, to, uint32(info.Mode().Perm()), info.Size(), f)
}

// Addr returns the guest's address of a family, 4 or 6.
func (g *Guest) Addr(family int) netip.Addr {
	if family == 6 {
		return g.IPv6
	}
	return g.IPv4
}

// Ended is closed when the machine has stopped, by Kill or by itself. After
// Restart there is a new one.
func (g *Guest) Ended() <-chan struct{} { return g.ended }

// Kill ends the machine at once and waits for it.
func (g *Guest) Kill() {
	_ = g.cmd.Process.Kill() // it may have ended
	<-g.ended
}

// stop ends the machine and takes it off the switch.
func (g *Guest) stop() error {
	g.Kill()
	if err := g.lab.Switch.Detach(g.Name); !errors.Is(err, bridge.ErrPort) { // it goes by itself, too
		return err
	}
	return nil
}

// Restart boots the machine again and waits until it answers.
func (g *Guest) Restart(ctx context.Context) error {
	if err := g.stop(); err != nil {
		return err
	}
	if err := g.start(); err != nil {
		return err
	}
	return g.await(ctx)
}
