package xdp_test

import (
	"os"
	"testing"

	"github.com/gohixl/hixl/internal/hosttest"
)

// victimEnv makes this test binary be a process that is going to be killed.
const victimEnv = "HIXL_XDP_VICTIM"

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		victim()
		os.Exit(1)
	}
	hosttest.VerifyTestMain(m)
}
