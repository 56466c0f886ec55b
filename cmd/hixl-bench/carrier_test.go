package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/bench"
)

func TestCarrierFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--transport", "rdma"},
		{"--transport", "xdp"},
		{"--transport", "xdp", "--netns", "--xdp-mode", "fast"},
		{"--transport", "xdp", "--netns", "--xdp-spin", "2ms"},
		{"--transport", "xdp", "--netns", "--xdp-spin", "-1us"},
		{"--xdp-spin", "20us"},
		{"--netns", "--in-process"},
		{"--netns", "--local", "127.0.0.1"},
		{"--netns", "--link-mtu", "60"},
		{"--link-mtu", "9000"},
	} {
		_, err := execute(t, args...)
		require.ErrorIs(t, err, bench.ErrFlag, "%v", args)
	}
}
