package bench

import "net/netip"

// protocolVersion changes when control messages do; both ends must agree.
const protocolVersion = 4

// verb is what a request asks for.
type verb string

const (
	doHello   verb = "hello"    // open a NIC and its memory
	doOpen    verb = "open"     // make and connect a cell's queue pairs
	doPrepare verb = "prepare"  // fresh pattern, cleared destination
	doUsage   verb = "usage"    // what was spent until now
	doCPU     verb = "cpu"      // the processor's time alone, which costs next to none
	doFinish  verb = "finish"   // verify what arrived
	doClose   verb = "close"    // close the cell's queue pairs
	doTCPOpen verb = "tcp-open" // listen for the baseline's connection
	doTCPTake verb = "tcp-take" // wait until messages have arrived
	doTCPEcho verb = "tcp-echo" // answer messages from now on, or stop to
	doTCPDone verb = "tcp-done" // verify what arrived

	doShmOpen  verb = "shm-open"  // map the ring of the shm baseline
	doShmStart verb = "shm-start" // take messages until the ring ends
	doShmTake  verb = "shm-take"  // wait until it has ended
	doShmDone  verb = "shm-done"  // verify what arrived
	doShmClose verb = "shm-close" // unmap the ring
)

// request is one question of the requester's side. The fields that its verb
// needs are set.
type request struct {
	Do    verb      `json:"do"`
	Hello *hello    `json:"hello,omitempty"`
	Open  *openCell `json:"open,omitempty"`
	TCP   *tcpSpec  `json:"tcp,omitempty"`
	Shm   *shmSpec  `json:"shm,omitempty"`
	// Cell is a cell's ID, of an opened one.
	Cell int `json:"cell,omitempty"`
	// Prepare is what a round needs in the peer's memory.
	Prepare *preparation `json:"prepare,omitempty"`
	// Spans are the messages sent in this round, one a lane.
	Spans []span `json:"spans,omitempty"`
	// Count is the messages of a baseline since it was opened.
	Count uint64 `json:"count,omitempty"`
}

// hello opens the peer.
type hello struct {
	Version int `json:"version"`
	// From is the requester's RoCE address, for the peer's notes.
	From netip.Addr `json:"from"`
	// Local is the RoCE address to open; unset: where the control connection is.
	Local netip.Addr `json:"local"`
	// Memory is the kind of the peer's regions; unset: the host's.
	Memory string `json:"memory,omitempty"`
	Region int    `json:"region"`
	Seed   uint64 `json:"seed"`
	Faults Faults `json:"faults"`
	// NoTrains: the peer's NIC sends every packet on its own, too.
	NoTrains bool `json:"no_trains"`
	// Shards is how many sockets of the peer's NIC receive, 0 is the default.
	Shards int `json:"shards"`
	// LowLatency: the peer's NIC looks longer before it parks, too.
	LowLatency bool `json:"low_latency,omitempty"`
	// Cores are those on which the peer's process is to stay; unset: anywhere.
	Cores []int `json:"cores,omitempty"`
}

// welcome answers hello with the peer's memory.
type welcome struct {
	Addr     netip.Addr `json:"addr"`
	Src, Dst remoteMemory
	// Memory says what the peer's regions are; unset: host memory.
	Memory string `json:"memory,omitempty"`
}

// remoteMemory names a region to one-sided operations.
type remoteMemory struct {
	Addr uint64 `json:"addr"`
	RKey uint32 `json:"rkey"`
}

// openCell makes a cell's queue pairs, connected to those at Addresses, which
// are hixl addresses in text form.
type openCell struct {
	Cell      cell     `json:"cell"`
	Addresses []string `json:"addresses"`
}

// preparation is what a side's memory must hold before a round.
type preparation struct {
	Key uint64 `json:"key"`
	// Fill the source, Clear the destination, set Counters of them, a cache
	// line apart, to their starting values.
	Fill     bool `json:"fill,omitempty"`
	Clear    bool `json:"clear,omitempty"`
	Counters int  `json:"counters,omitempty"`
}

// tcpSpec describes the TCP baseline of one size.
type tcpSpec struct {
	Size int `json:"size"`
	// Echo answers each message with a short one, for latency.
	Echo bool `json:"echo,omitempty"`
}

// shmSpec describes the shm baseline of one size.
type shmSpec struct {
	Size int `json:"size"`
	// PID and FD name the ring's memory, of a process on the same machine.
	PID int `json:"pid,omitempty"`
	FD  int `json:"fd,omitempty"`
}

// response answers one request.
type response struct {
	// Err is what went wrong, "" if nothing did.
	Err string `json:"err,omitempty"`
	// Busy says why the answer to hello takes its time. It may come before the
	// answer, and even before the question.
	Busy     string         `json:"busy,omitempty"`
	Mismatch *MismatchError `json:"mismatch,omitempty"`
	Welcome  *welcome       `json:"welcome,omitempty"`
	// Addresses are the queue pairs of an opened cell.
	Addresses []string `json:"addresses,omitempty"`
	Usage     *usage   `json:"usage,omitempty"`
	// Port is where the TCP baseline listens.
	Port uint16 `json:"port,omitempty"`
}
