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
	// DefaultShards is the number of sockets that receive.
	DefaultShards = 1
	// MaxSourcePorts bounds the sockets of a Conn that send.
	MaxSourcePorts = 64
	// MaxShards bounds the sockets of a Conn that receive.
	MaxShards = 4
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
	// Shards is how many sockets receive, a power of two up to MaxShards; 0 means
	// DefaultShards. A NIC reads each on its own, so that several processors can
	// receive at once, and each has a receive buffer. The low bits of the
	// destination QPN choose the socket. With one, nobody else can take the
	// address. Several share it by SO_REUSEPORT, which any other process of the
	// same user could ask for as well, on purpose: whoever opens a Conn never
	// does. Systems that cannot steer packets so have one: Info tells.
	Shards int
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
		{"udp.Config.Shards", &c.Shards, DefaultShards, 1, MaxShards},
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
	if c.Shards&(c.Shards-1) != 0 {
		return c, &transport.ConfigError{Field: "udp.Config.Shards", Value: c.Shards, Allowed: "a power of two"}
	}
	if c.Trains > TrainsOff {
		return c, &transport.ConfigError{Field: "udp.Config.Trains", Value: c.Trains, Allowed: "TrainsAuto, TrainsOff"}
	}
	return c, nil
}

// Info is what a Conn got from the system.
type Info struct {
	// RecvBuffer and SendBuffer are the effective sizes of each socket's, as the
	// kernel counts them: Linux doubles what is asked for and charges its own overhead, so that
	// single packets of 4 KiB use about half of it and those of 64 bytes a tenth.
	// 0 where the system does not tell.
	RecvBuffer, SendBuffer int
	// SourcePorts are the ports packets leave from.
	SourcePorts []uint16
	// Shards is how many sockets receive.
	Shards int
	// Interface has the address; empty when it was not found.
	Interface string
	// GSO and GRO: trains can be sent now, and may be received.
	GSO, GRO bool
}
