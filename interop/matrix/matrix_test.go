//go:build linux

package matrix

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/interop/lab"
)

// HIXL_INTEROP runs the short matrix as Go tests, with the value as the backend:
// uml or qemu. It needs root and Debian.
const runEnv = "HIXL_INTEROP"

func TestMain(m *testing.M) {
	backend := lab.Backend(os.Getenv(runEnv))
	if backend == "" || lab.Inside() {
		os.Exit(m.Run())
	}
	code := 1
	_, err := Prepare(context.Background(), backend, os.Stderr)
	if err == nil {
		code, err = lab.Reexec()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func TestSmoke(t *testing.T) {
	backend := lab.Backend(os.Getenv(runEnv))
	if backend == "" {
		t.Skip("not asked for: " + runEnv + "=uml or =qemu")
	}
	carriers, err := ParseCarriers(os.Getenv(CarrierEnv))
	require.NoError(t, err)
	b, err := Boot(t.Context(), backend)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Lab.Close()) }()
	r := b.RunAll(t.Context(), Table(), Selection{Smoke: true, Carriers: carriers}, func(o Outcome) {
		t.Log(o)
		if o.Status != Pass {
			t.Errorf("%s [%s]: %s", o.Case, o.Role, o.Detail)
		}
	})
	require.Greater(t, len(r.Outcomes), 10)
	t.Run("a guest that ends is booted again", func(t *testing.T) {
		b.Lab.Guests[0].Kill()
		c := verbsCell("", "op=write", 4)
		o := b.once(t.Context(), &c, Client, "")
		require.Equal(t, Fail, o.Status)
		require.Contains(t, o.Detail, "vm1 ended")
		text, err := os.ReadFile(o.Log)
		require.NoError(t, err)
		require.Contains(t, string(text), "vm1's console ends")
		o = b.Run(t.Context(), &c, Client)
		require.Equal(t, Pass, o.Status, o.Detail)
	})
}
