//go:build race

package nic

import "sync/atomic"

// A packet that arrives was sent before: what the sender did until then happened
// before what the receiver does. Within one process the race detector has to be
// told, as package syscall tells it for sockets of package net.
var ioSync atomic.Uint64

func beforeSend()   { ioSync.Add(1) }
func afterReceive() { ioSync.Load() }
