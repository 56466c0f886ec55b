package hostinfo

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// portHolders returns the sockets of this network namespace that hold a UDP
// port, the kernel's own among them.
func portHolders(port uint16) ([]holder, error) {
	v4, err := os.ReadFile("/proc/net/udp")
	if err != nil {
		return nil, err
	}
	v6, _ := os.ReadFile("/proc/net/udp6") // absent without IPv6
	return append(parseHolders(string(v4), port), parseHolders(string(v6), port)...), nil
}

// parseHolders finds a local UDP port in a table of /proc/net.
func parseHolders(table string, port uint16) (out []holder) {
	const local, inode = 1, 9 // columns
	want := fmt.Sprintf("%04X", port)
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) <= inode {
			continue
		}
		text, p, _ := strings.Cut(f[local], ":")
		if addr, ok := parseProcAddr(text); ok && p == want {
			out = append(out, holder{addr, f[inode]})
		}
	}
	return out
}

// parseProcAddr reads an address as /proc/net writes it: 32-bit words in hex,
// each in the machine's byte order.
func parseProcAddr(text string) (netip.Addr, bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b)%4 != 0 {
		return netip.Addr{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	addr, ok := netip.AddrFromSlice(b)
	return addr.Unmap(), ok
}

// socketOwner names the process that has a socket open, or who else may have
// it.
func socketOwner(inode string) string {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well formed
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == "socket:["+inode+"]" {
			return process(strings.Split(link, "/")[2])
		}
	}
	if rxeLoaded() {
		return "the kernel, most likely: rdma_rxe is loaded"
	}
	return "a process that this one may not see (another user's or container's)"
}

// process names a process by its command and number.
func process(pid string) string {
	comm, err := os.ReadFile("/proc/" + pid + "/comm")
	name := strings.TrimSpace(string(comm))
	if err != nil {
		name = "process"
	}
	if pid == strconv.Itoa(os.Getpid()) {
		return fmt.Sprintf("%s (pid %s, this process)", name, pid)
	}
	return fmt.Sprintf("%s (pid %s)", name, pid)
}

// rxeLoaded reports whether the kernel's soft RoCE is there to own the port.
func rxeLoaded() bool {
	_, err := os.Stat("/sys/module/rdma_rxe")
	return err == nil
}
