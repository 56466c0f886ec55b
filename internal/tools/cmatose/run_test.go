package cmatose

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/internal/tools"
	"github.com/gohixl/hixl/internal/tools/toolstest"
)

// both runs both ends of a test, each with its own Config.
func both(t *testing.T, n int, patience time.Duration, server, client Config) (s, c *toolstest.End[Result]) {
	t.Helper()
	return toolstest.Pair(t, n, patience, func(ctx context.Context, common tools.Common) (*Result, error) {
		cfg := server
		if common.Client() {
			cfg = client
			common.Patience *= 10 // the server is the one that gives up
		}
		cfg.Common = common
		return Run(ctx, cfg)
	})
}

func TestLoopback(t *testing.T) {
	for i, cfg := range []Config{
		Defaults(),
		{Connections: 4, Messages: 10, Size: 10001, TrafficClass: 32, Timeout: 16},
		{Connections: 3, Messages: 5},
		{Connections: 2, Size: 100},
	} {
		t.Run(fmt.Sprintf("-c %d -C %d -S %d", cfg.Connections, cfg.Messages, cfg.Size), func(t *testing.T) {
			s, c := both(t, 230+i, toolstest.Patience, cfg, cfg)
			require.NoError(t, s.Err)
			require.NoError(t, c.Err)
			messages := "data transfers complete\n"
			n := cfg.Connections * cfg.Messages
			if cfg.Size == 0 {
				n = 0
			}
			require.Equal(t, n, s.Res.Received)
			require.Equal(t, n, c.Res.Received)
			if n > 0 {
				require.Contains(t, s.Out.String(), messages)
				require.Contains(t, c.Out.String(), messages)
			}
			require.Contains(t, s.Out.String(), "disconnected\ntest complete\nreturn status 0\n")
			require.Contains(t, c.Out.String(), "test complete\nreturn status 0\n")
		})
	}
}

func TestEndsThatDiffer(t *testing.T) {
	s, c := both(t, 240, toolstest.Patience, Config{Connections: 1, Messages: 2, Size: 64}, Config{Connections: 1, Messages: 2, Size: 100})
	require.ErrorIs(t, c.Err, tools.ErrData)
	require.ErrorContains(t, c.Err, "message 1 of connection 1: 64 bytes long, not 100: give both ends the same -S")
	require.Error(t, s.Err)
	require.Contains(t, s.Out.String(), "return status -1\n")

	toolstest.Patiently(t, time.Second, func(patience time.Duration) bool {
		s, c = both(t, 241, patience, Config{Connections: 2, Messages: 1, Size: 64}, Config{Connections: 1, Messages: 1, Size: 64})
		require.ErrorIs(t, s.Err, tools.ErrSilent)
		require.Error(t, c.Err)
		return strings.Contains(s.Err.Error(), "1 of 2 connections (do both ends have the same -c?)")
	})

	// The third message finds no receive, and is sent again and again.
	toolstest.Patiently(t, time.Second, func(patience time.Duration) bool {
		s, _ = both(t, 242, patience, Config{Connections: 1, Messages: 3, Size: 64}, Config{Connections: 1, Messages: 2, Size: 64})
		require.ErrorIs(t, s.Err, tools.ErrSilent)
		return strings.Contains(s.Err.Error(), "connection 1: 2 of 3 messages sent, 2 received")
	})
}

func TestOptions(t *testing.T) {
	for want, cfg := range map[string]Config{
		"-c 0": {}, "-C -1": {Connections: 1, Messages: -1}, "-S -1": {Connections: 1, Size: -1},
		"-t 256": {Connections: 1, TrafficClass: 256}, "-a 32": {Connections: 1, Timeout: 32},
	} {
		_, err := Run(t.Context(), cfg)
		require.ErrorIs(t, err, tools.ErrOption, want)
		require.ErrorContains(t, err, want)
	}
}
