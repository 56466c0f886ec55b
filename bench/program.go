package bench

import (
	"bytes"
	"fmt"
	"time"
)

// program is a foreign benchmark: a server and a client, run anew for each
// measurement, on 127.0.0.1 of a network namespace that has nothing else.
type program struct {
	// file is the executable, pkg Debian's package of it.
	file, pkg string
	about     string
	env       []string
	// server and client are the arguments for n messages of size bytes.
	server, client func(size int, n uint64) []string
	// latency are the client's arguments to measure latency, nil when there is no
	// such test, or client measures it too.
	latency func(size int, n uint64) []string
	// least is how many messages of a size a run of client must have to tell of the
	// program, nil when a short one does.
	least func(size int) uint64
	// alone: one message is in flight, in bandwidth too.
	alone bool
	// parse reads what the client printed about n messages of size bytes.
	parse func(out []byte, size int, n uint64) (figures, error)
}

// programPort is where servers listen, in a namespace of their own.
const programPort = "13337"

// figures are what a program found.
type figures struct {
	messages uint64
	elapsed  time.Duration
	// oneWay is the latency of a message one way, 0 when it was not measured.
	oneWay time.Duration
}

// outputError is output that cannot be understood.
type outputError struct {
	out []byte
	why string
}

// Error shows the end of the output.
func (e *outputError) Error() string {
	const most = 200
	out := bytes.TrimSpace(e.out)
	if len(out) > most {
		out = out[len(out)-most:]
	}
	return fmt.Sprintf("%s in its output, which ends %q", e.why, out)
}
