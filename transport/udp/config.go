package udp

import (
	"fmt"

	"github.com/gohixl/hixl/transport"
)

// Defaults and limits of Config.
const (
	// DefaultRecvBuffer holds a few windows of 1 to 2 MiB; single small packets
	// use only a tenth of a socket buffer for payload.
	DefaultRecvBuffer = 16 << 20
	// DefaultSendBuffer is for links that queue; loopback needs none.
	DefaultSendBuffer = 8 << 20
	// MaxBuffer is the largest buffer that may be asked for.
	MaxBuffer = 1 << 30
	// MinBuffer is the smallest: one train.
	MinBuffer = 64 << 10
	// DefaultSourcePorts is the number of source ports of a Conn.
	DefaultSourcePorts = 4
	// MaxSourcePorts bounds the sockets of a Conn.
	MaxSourcePorts = 64
)

// Trains chooses whether trains are used.
type Trains uint8

// The choices for Trains.
const (
	// TrainsAuto uses trains where the kernel has them.
	TrainsAuto Trains = iota
	// TrainsOff neither sends nor receives them.
	TrainsOff
)

// Config sets up a Conn. The zero value is good.
type Config struct {
	Trains Trains
	// RecvBuffer and SendBuffer are the socket buffers asked for in bytes,
	// MinBuffer..MaxBuffer; 0 means the default. Without CAP_NET_ADMIN the
	// kernel cuts them to net.core.rmem_max and wmem_max: Info tells what came
	// of it.
	RecvBuffer, SendBuffer int
	// SourcePorts is how many source ports the Conn spreads its traffic over,
	// 1..MaxSourcePorts; 0 means DefaultSourcePorts.
	SourcePorts int
}

func (c Config) fill() (Config, error) {
	for _, f := range []struct {
		name          string
		v             *int
		def, min, max int
	}{
		{"udp.Config.RecvBuffer", &c.RecvBuffer, DefaultRecvBuffer, MinBuffer, MaxBuffer},
		{"udp.Config.SendBuffer", &c.SendBuffer, DefaultSendBuffer, MinBuffer, MaxBuffer},
		{"udp.Config.SourcePorts", &c.SourcePorts, DefaultSourcePorts, 1, MaxSourcePorts},
	} {
		if *f.v == 0 {
			*f.v = f.def
		}
		if *f.v < f.min || *f.v > f.max {
			return c, &transport.ConfigError{
				Field: f.name, Value: *f.v,
				Allowed: fmt.Sprintf("%d..%d, or 0 for %d", f.min, f.max, f.def),
			}
		}
	}
	if c.Trains > TrainsOff {
		return c, &transport.ConfigError{Field: "udp.Config.Trains", Value: c.Trains, Allowed: "TrainsAuto, TrainsOff"}
	}
	return c, nil
}

// Info is what a Conn got from the system.
type Info struct {
	// RecvBuffer and SendBuffer are the effective sizes as the kernel counts
	// them: Linux doubles what is asked for and charges its own overhead, so that
	// single packets of 4 KiB use about half of it and those of 64 bytes a tenth.
	// 0 where the system does not tell.
	RecvBuffer, SendBuffer int
	// SourcePorts are the ports packets leave from.
	SourcePorts []uint16
	// Interface has the address; empty when it was not found.
	Interface string
	// GSO and GRO: trains can be sent now, and may be received.
	GSO, GRO bool
}
