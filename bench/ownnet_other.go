//go:build !linux

package bench

import (
	"context"
	"errors"
	"time"
)

func canIsolate() string { return "needs Linux" }

type ownNet struct{ congestion string }

var errNoOwnNet = errors.New("bench: foreign programs need Linux")

func openOwnNet([]int) (*ownNet, error) { return nil, errNoOwnNet }

func (n *ownNet) run(context.Context, []string, string, []string, []string) ([]byte, time.Duration, error) {
	return nil, 0, errNoOwnNet
}

func (n *ownNet) close() {}
