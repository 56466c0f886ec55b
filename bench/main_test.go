package bench

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/gohixl/hixl/internal/hosttest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// childEnv makes this test binary be somebody else.
const childEnv = "HIXL_BENCH_TEST_CHILD"

// children are what it can be.
var children = map[string]func(){
	"die": func() {
		fmt.Fprintln(os.Stderr, "no room\nfor a NIC")
		os.Exit(3)
	},
	"leave":   func() {},
	"babble":  func() { fmt.Println("this is no JSON"); waitForEnd() },
	"refuse":  func() { fmt.Println(`{"err":"port busy"}`); waitForEnd() },
	"forever": hang,
	"peer":    func() { _ = ServePeer(context.Background(), os.Stdin, os.Stdout, netip.Addr{}) },
	"short-lived peer": func() {
		time.AfterFunc(700*time.Millisecond, func() {
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
		})
		_ = ServePeer(context.Background(), os.Stdin, os.Stdout, netip.Addr{})
	},
}

// hang does nothing until it is killed. It sleeps because a process without cgo
// whose goroutines all block for ever is ended by the runtime.
func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

// waitForEnd reads standard input until it is closed.
func waitForEnd() {
	b := make([]byte, 512)
	for {
		if _, err := os.Stdin.Read(b); err != nil {
			return
		}
	}
}

func TestMain(m *testing.M) {
	if be := children[os.Getenv(childEnv)]; be != nil {
		be()
		os.Exit(0)
	}
	hosttest.VerifyTestMain(m)
}

// childCommand is the command that starts this binary as a child.
func childCommand(t *testing.T, as string) []string {
	t.Helper()
	t.Setenv(childEnv, as)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{exe}
}
