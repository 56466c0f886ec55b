package nic

import (
	"slices"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/internal/mono"
	"github.com/gohixl/hixl/mr"
	"github.com/gohixl/hixl/roce"
	"github.com/gohixl/hixl/roce/wr"
)

// Sizes of what one drain of one queue pair gives, and of the staging buffer, in
// which several fit.
const (
	batchPackets = 256
	batchBytes   = 256 << 10
	stageBytes   = 2 * batchBytes
)

// sender drains queue pairs and writes their packets. It belongs to one goroutine
// at a time: the receiver has one, the service goroutine has one, and whoever
// posts borrows one.
type sender struct {
	nic   *NIC
	batch *wr.Batch
	stage stage
	free  func() // of the stage's memory

	todo    []*Queue  // to be drained
	paths   []*path   // on which others may be able to send now
	jobs    []job     // drained, their packets in the stage
	records []record  // of the drain being built
	fetches []fetched // of all jobs
	loan    loan
	vec     [1]device.Vec
	part    [1]mr.Span
	// patience is how many rounds a flush goes on when others keep adding work;
	// then the service goroutine takes over. 0 is without end.
	patience int
}

// postPatience keeps a posting application from serving its peers for good.
const postPatience = 16

// job is a queue pair whose drain this sender holds until the packets have left.
type job struct {
	q       *Queue
	gen     uint32
	drains  uint64 // newest drain when it was taken
	more    bool
	fetches int // first of its own; they reach to those of the next job
	fail    bool
}

// record is a packet between the two passes of a drain, or a part of a run.
type record struct {
	out   *wr.Out
	route *route
	pkt   []byte      // in the stage, or in entry
	first int         // index in the run
	n     int         // packets
	id    uint16      // IPv4 identification of the first
	entry *heldPacket // nil when it is in the stage
	late  bool        // its spans cannot be read directly
	undo  mark        // the stage before it
}

// fetched is a payload that has been read, or could not be: of a packet that has
// just been sent, or of a held one.
type fetched struct {
	token   uint64
	outcome wr.Outcome
	entry   *heldPacket
	dead    bool // a payload before it could not be read
}

func newSender(n *NIC) *sender {
	s := &sender{nic: n, batch: wr.NewBatch(batchPackets, batchBytes)}
	s.batch.Runs = true
	buf, free := buffer(stageBytes)
	s.stage.buf, s.stage.lent = buf, newFrames(n.conn)
	s.free = func() {
		s.stage.lent.free()
		free()
	}
	return s
}

// flush drains the queue pairs until they have nothing more to say, or until
// somebody else does it.
func (s *sender) flush(now mono.Time, qs ...*Queue) {
	s.todo = append(s.todo, qs...)
	for round := 1; len(s.todo) > 0 || len(s.paths) > 0; round++ {
		if s.patience > 0 && round > s.patience && s.handOver() {
			return
		}
		taken := 0
		s.stage.trains = s.nic.trains()
		for taken < len(s.todo) && s.stage.room() >= batchBytes {
			s.take(now, s.todo[taken], false)
			taken++
		}
		rest := copy(s.todo, s.todo[taken:])
		clear(s.todo[rest:])
		s.todo = s.todo[:rest]
		s.turns(now)
		if s.stage.packets > 0 {
			s.write()
		}
		s.settleAll(now)
	}
}

// handOver leaves what there is to do to the service goroutine, if there is one.
func (s *sender) handOver() bool {
	for _, p := range s.paths {
		if q := p.pop(); q != nil {
			s.todo = append(s.todo, q)
		}
	}
	clear(s.paths)
	s.paths = s.paths[:0]
	if !s.nic.later(s.todo) {
		return false
	}
	clear(s.todo)
	s.todo = s.todo[:0]
	return true
}

// turns lets the queue pairs send that wait for a path with room. Paths stay noted
// while the stage has none.
func (s *sender) turns(now mono.Time) {
	left := s.paths[:0]
	for _, p := range s.paths {
		for p.ready() && s.stage.room() >= batchBytes {
			if q := p.pop(); q != nil {
				s.take(now, q, true)
			}
		}
		if p.ready() {
			left = append(left, p)
		}
	}
	clear(s.paths[len(left):])
	s.paths = left
}

// crowded notes a path that others wait for.
func (s *sender) crowded(p *path) {
	if p.waiting.Load() > 0 && !slices.Contains(s.paths, p) {
		s.paths = append(s.paths, p)
	}
}

// take drains one queue pair into the stage. On a path that others wait for it has
// requests only in its turn.
func (s *sender) take(now mono.Time, q *Queue, turn bool) {
	q.Lock()
	if !q.BeginDrain() {
		q.Unlock()
		return
	}
	j := job{q: q, gen: q.Gen(), fetches: len(s.fetches)}
	old := q.path
	r := q.currentRoute()
	if old != nil && old != q.path {
		s.crowded(old) // it has room now
	}
	before := s.stage.packets
	full := s.release(now, q)
	s.batch.Reset()
	if q.held.room() && !full {
		q.drains++
		j.more = s.drain(now, q, turn)
		s.lay(q, r)
	} else {
		q.Collect(q.drains, false)
		j.more = full
	}
	j.drains = q.drains
	if len(s.records) == 0 && s.stage.packets == before {
		s.settle(now, &j, nil)
		q.Unlock()
		return
	}
	q.Unlock()
	s.fill(&j)
	s.loan.end()
	s.jobs = append(s.jobs, j)
}

// drain asks the engine for packets, requests as far as the path has room. Locked.
func (s *sender) drain(now mono.Time, q *Queue, turn bool) (more bool) {
	p := q.path
	if p == nil {
		return q.Drain(now, s.batch, q.drains)
	}
	q.weigh() // what has been answered since
	s.batch.Allow(p.allows(turn))
	more = q.Drain(now, s.batch, q.drains)
	q.weigh()
	if s.batch.Short() {
		p.push(q)
	}
	s.crowded(p)
	return more
}

// release moves held packets that are complete to the stage, and reports whether
// the stage was full before they all were. Locked.
func (s *sender) release(now mono.Time, q *Queue) (full bool) {
	for q.held.ready() {
		if s.stage.room() < batchBytes+maxPacket {
			return true
		}
		e := q.held.pop()
		switch {
		case e.dead || e.gen != q.Gen():
			e.outcome = wr.Done // of no interest: it comes after a failure
		case e.outcome != wr.Done:
			q.held.kill()
		default:
			pkt, id := s.stage.place(q, e.route, e.tos, len(e.buf))
			copy(pkt, e.buf)
			seal(e.route.headers, pkt, id)
		}
		if e.token != 0 {
			q.Fetched(now, e.gen, e.token, e.outcome, e.late)
		}
		s.nic.spare.put(e)
	}
	return false
}

// lay is the first pass over a drain, under the lock: it gives every packet its
// place and writes what is only valid here, headers and inline data.
func (s *sender) lay(q *Queue, r *route) {
	s.records = s.records[:0]
	holding := !q.held.empty()
	for i := range s.batch.Len() {
		o := s.batch.At(i)
		rec := record{out: o, route: r, late: o.Token != 0 && !direct(s.batch.Spans(o))}
		if o.To != nil {
			rec.route = q.datagramRoute(o.To)
		}
		holding = holding || rec.late
		tos := tosOf(o, rec.route)
		for rec.n = 1; rec.first < int(o.Run); rec.first += rec.n {
			rec.undo = s.stage.mark()
			switch {
			case holding:
				rec.entry = s.hold(q, o, tos, &rec)
				rec.pkt = rec.entry.buf
			case o.Run == 1:
				rec.pkt, rec.id = s.stage.place(q, rec.route, tos, o.Size())
			default:
				rec.pkt, rec.id, rec.n = s.stage.placeRun(q, rec.route, tos, o.Size(), int(o.Run)-rec.first)
			}
			if rec.n == 1 {
				o.PutHeader(rec.pkt, rec.first)
				copy(rec.pkt[len(o.Header()):], o.Inline)
			}
			s.records = append(s.records, rec)
		}
		q.reading = q.reading || o.Token != 0 && opcodeOf(o).IsResponse()
	}
}

// hold appends a packet to the queue pair's FIFO.
func (s *sender) hold(q *Queue, o *wr.Out, tos uint8, rec *record) *heldPacket {
	e := s.nic.spare.get(o.Size())
	e.drain, e.gen, e.tos, e.route = q.drains, q.Gen(), tos, rec.route
	e.token, e.late = o.TokenOf(rec.first), rec.late
	if rec.late {
		q.Hold(e.token)
	}
	q.held.push(e)
	return e
}

func opcodeOf(o *wr.Out) roce.Opcode { return roce.Opcode(o.Header()[0]) }

// cnpTOS is DSCP 48 and ECT(0), as hardware sends CNPs (§1.11).
const cnpTOS = 48<<2 | ecnCapable

func tosOf(o *wr.Out, r *route) uint8 {
	if opcodeOf(o) == roce.OpCNP {
		return cnpTOS
	}
	return r.tos
}

// direct reports whether the CPU can address all spans.
func direct(spans []mr.Span) bool {
	for i := range spans {
		if spans[i].Region.Bytes() == nil && spans[i].Region.Len() > 0 {
			return false
		}
	}
	return true
}

// fill is the second pass, outside the lock: payloads are read and packets
// sealed. When a payload cannot be read, what follows of the drain is dropped:
// the peer would see a gap.
func (s *sender) fill(j *job) {
	for i := range s.records {
		rec := &s.records[i]
		if o := s.read(rec, j); o != wr.Done {
			s.abandon(i)
			return
		}
	}
}

// read gets the payload of a packet, seals the packet if it can leave, and notes
// for settle how that ended, unless memory will tell later.
func (s *sender) read(rec *record, j *job) wr.Outcome {
	o := rec.out
	var outcome wr.Outcome
	if rec.n > 1 {
		outcome = s.fetchRun(rec)
	} else {
		spans := s.spans(rec)
		at := len(o.Header())
		end := at + int(o.Len)
		clear(rec.pkt[end : len(rec.pkt)-roce.ICRCLen]) // the pad (R1)
		switch {
		case rec.late:
			return s.readLate(rec, j, spans, rec.pkt[at:end])
		case rec.entry != nil:
			outcome = s.gather(rec.pkt[at:end], spans)
		default:
			outcome = s.fetchAndSeal(rec, at, end, spans)
		}
	}
	if o.Token != 0 || rec.entry != nil {
		s.fetches = append(s.fetches, fetched{token: o.TokenOf(rec.first), outcome: outcome, entry: rec.entry})
	}
	return outcome
}

// spans returns where the payload of a single packet lies, valid until the next call.
func (s *sender) spans(rec *record) []mr.Span {
	if rec.out.Run == 1 {
		return s.batch.Spans(rec.out)
	}
	s.part[0] = s.batch.Part(rec.out, rec.first, 1)
	return s.part[:]
}

// fetchRun makes the packets of a part of a run: header, payload and ICRC.
func (s *sender) fetchRun(rec *record) wr.Outcome {
	o, r := rec.out, rec.route
	size, payload, at := o.Size(), int(o.Len), len(o.Header())
	from := s.batch.Part(o, rec.first, rec.n)
	for k := range rec.n {
		if !s.loan.take(&from) {
			rec.undo = rec.undo.after(k, size, rec.id == 0)
			rec.first += k // it is to blame
			return wr.Revoked
		}
		pkt := rec.pkt[k*size : (k+1)*size : (k+1)*size]
		o.PutHeader(pkt, rec.first+k)
		sum := r.template.Begin(&r.headers, rec.id+uint16(k), pkt[:at], size)
		sum = sum.Copy(pkt[at:], from.Bytes()[k*payload:(k+1)*payload])
		sum.Seal(pkt[at+payload:])
	}
	return wr.Done
}

// fetchAndSeal copies the payload, which lies at [at, end) of the packet, from
// its spans, if it is not there already, and seals the packet in the same pass.
func (s *sender) fetchAndSeal(rec *record, at, end int, spans []mr.Span) wr.Outcome {
	pkt := rec.pkt
	sum := rec.route.template.Begin(&rec.route.headers, rec.id, pkt[:at], len(pkt))
	for i := range spans {
		if !s.loan.take(&spans[i]) {
			return wr.Revoked
		}
		b := spans[i].Bytes()
		sum = sum.Copy(pkt[at:end], b)
		at += len(b)
	}
	icrc := len(pkt) - roce.ICRCLen
	sum.Add(pkt[at:icrc]).Seal(pkt[icrc:])
	return wr.Done
}

// gather copies directly addressable spans to dst.
func (s *sender) gather(dst []byte, spans []mr.Span) wr.Outcome {
	for i := range spans {
		if !s.loan.take(&spans[i]) {
			return wr.Revoked
		}
		n := copy(dst, spans[i].Bytes())
		dst = dst[n:]
	}
	return wr.Done
}

// readLate starts to read spans of memory that may finish later.
func (s *sender) readLate(rec *record, j *job, spans []mr.Span, dst []byte) wr.Outcome {
	n := s.nic
	op := n.late.begin(j.q, j.gen, opFetch, rec.out.TokenOf(rec.first))
	op.entry = rec.entry
	outcome := wr.Done
	for i := range spans {
		if !spans[i].Acquire() {
			outcome = wr.Revoked
			break
		}
		op.spans = append(op.spans, spans[i])
		s.vec[0] = device.Vec{Off: spans[i].Off, B: dst[:spans[i].Len]}
		dst = dst[spans[i].Len:]
		n.late.add(op)
		done, err := spans[i].Region.Memory().ReadV(s.vec[:], op.id(), n)
		if done {
			n.late.end(op, op.outcomeOf(err)) // the issuer's own call is still pending
		}
	}
	if !n.late.end(op, outcome) {
		return wr.Done // or what the memory will say
	}
	outcome = op.outcome
	s.fetches = append(s.fetches, fetched{outcome: outcome, entry: rec.entry})
	op.release()
	n.late.put(op)
	return outcome
}

// abandon drops the packets of the drain after record i, whose payload could not
// be read, and i itself.
func (s *sender) abandon(i int) {
	if s.records[i].entry == nil {
		s.stage.undo(s.records[i].undo)
	}
	for k := i + 1; k < len(s.records); k++ {
		rec := &s.records[k]
		if rec.out.Token != 0 || rec.entry != nil {
			s.fetches = append(s.fetches, fetched{token: rec.out.TokenOf(rec.first), entry: rec.entry, dead: true})
		}
	}
}
