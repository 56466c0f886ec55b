package chaostest

import (
	"testing"

	"github.com/gohixl/hixl/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.VerifyTestMain(m) }
