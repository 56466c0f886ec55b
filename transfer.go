package hixl

import (
	"context"
	"errors"
	"fmt"

	"github.com/gohixl/hixl/cq"
)

// TransferOp is what a transfer does.
type TransferOp uint8

// The operations.
const (
	// Read copies from the peer's memory to local memory.
	Read TransferOp = iota
	// Write copies from local memory to the peer's.
	Write
	// WriteImm is Write, and tells the peer 32 bits when all has arrived.
	WriteImm
	// CompareSwap replaces a word of the peer's if it has an expected value.
	CompareSwap
	// FetchAdd adds to a word of the peer's.
	FetchAdd
	// AtomicStore replaces a word of the peer's in one step.
	AtomicStore
	// Notify tells the peer something, see [Transfer].
	Notify
	// Lookup asks the peer for a region, Flush waits for everything. They are what
	// errors speak of, not operations of a [Transfer].
	Lookup
	Flush
	numTransferOps
)

var transferOps = [...]string{"read", "write", "write with immediate", "compare-and-swap", "fetch-and-add", "atomic store", "notification", "lookup", "flush"}

// String names the operation.
func (o TransferOp) String() string {
	if int(o) < len(transferOps) {
		return transferOps[o]
	}
	return fmt.Sprintf("TransferOp(%d)", uint8(o))
}

// repeatable reports whether doing it twice is the same as doing it once.
func (o TransferOp) repeatable() bool { return o == Read || o == Write || o == AtomicStore }

// lands reports whether bytes of it may arrive at the peer after this side has
// given it up. What a read brings is stopped here.
func (o TransferOp) lands() bool { return o != Read }

func (o TransferOp) atomic() bool { return o == CompareSwap || o == FetchAdd || o == AtomicStore }

// TransferFlags modify a transfer.
type TransferFlags uint8

// The flags.
const (
	// Ordered puts the transfer on the peer's first queue pair, where it takes
	// effect after all Ordered ones that were begun before.
	Ordered TransferFlags = 1 << iota
	// FenceBefore holds the transfer back until all reads and atomics that were
	// begun before it on the same queue pair have completed.
	FenceBefore
	// NoCoalesce keeps a Push from being gathered with others.
	NoCoalesce
	// Unsignaled is what each Push is.
	Unsignaled
)

// Desc is one piece of a transfer: Len bytes between a local and a remote region.
type Desc struct {
	// Local is the local region, LocalOff the first byte in it. It must stay as
	// it is (reads: untouched) until the transfer is done and fenced.
	Local    *Region
	LocalOff uint64
	// Inline takes the place of Local for writes of up to 256 bytes, which are
	// copied before the call returns.
	Inline []byte
	// Remote is the peer's region, RemoteOff the first byte in it.
	Remote    *RemoteRegion
	RemoteOff uint64
	// Len is the length in bytes; with Inline it may be left out.
	Len uint64
}

// Transfer is a transfer in full. Nothing of it is kept when the call that takes it
// returns, so it may be used again.
type Transfer struct {
	Op TransferOp
	// Descs are its pieces. They are done in any order, unless it is Ordered.
	// Atomics have one, of which only Remote and RemoteOff count.
	Descs []Desc
	Flags TransferFlags
	// Imm is what WriteImm tells.
	Imm uint32
	// Compare is what CompareSwap expects; Operand is what it, or AtomicStore,
	// puts there, or what FetchAdd adds.
	Compare, Operand uint64
	// Notify, if not nil, is delivered to the peer when all bytes of the transfer
	// are visible there (of a read: here). With the operation Notify, which has no
	// pieces, when everything is that was begun before on this peer.
	Notify *Notification
	// Done, if not nil, is called once when the transfer is done: by the dispatcher,
	// one such call at a time, or in Poll of a stepped context. It must not block.
	Done func(*Handle)
	// UserData comes back from [Handle.UserData].
	UserData any
}

// Start begins a transfer. When it returns an error nothing was begun: the error is
// a *[RegionError], a *[PeerError], or unwraps to [ErrBusy], [ErrNotifyFull] or
// [ErrTransfer]. What fails later is the handle's error, a *[TransferError]. Work
// for a peer that is being connected waits for it.
func (p *Peer) Start(t *Transfer) (*Handle, error) { return p.start(t, t.Descs) }

// start is Start for pieces that may stay on the caller's stack, as what t points to
// may not.
func (p *Peer) start(t *Transfer, descs []Desc) (*Handle, error) {
	h := new(Handle)
	h.reset(p, t)
	if err := p.begin(h, t, descs); err != nil {
		return nil, err
	}
	return h, nil
}

// Do is Start and Wait in one, without garbage. When ctx ends first, the transfer
// is given up, see [Handle.Cancel], and the error is a *[TransferError] that
// unwraps to the context's error, and to [ErrUnfenced] unless it is fenced.
func (p *Peer) Do(ctx context.Context, t *Transfer) error {
	_, err := p.do(ctx, t, t.Descs)
	return err
}

// do is Do for such pieces.
func (p *Peer) do(ctx context.Context, t *Transfer, descs []Desc) (uint64, error) {
	if p.c.nic.stepped {
		return 0, p.refuse(t.Op, ErrStepped)
	}
	if err := ctx.Err(); err != nil {
		return 0, p.refuse(t.Op, err)
	}
	h := p.c.spare.Get().(*Handle)
	h.reset(p, t)
	for err := p.begin(h, t, descs); err != nil; err = p.begin(h, t, descs) {
		full := p.fullness(err)
		if full == nil {
			return 0, err
		}
		select {
		case <-full:
		case <-ctx.Done():
			return 0, p.refuse(t.Op, errors.Join(err, ctx.Err()))
		}
	}
	if !h.await(ctx) {
		return 0, p.overdue(ctx, h)
	}
	result, err := h.result, h.err
	if err == nil && h.onDone == nil {
		p.c.spare.Put(h)
	}
	return result, err
}

// refuse is the error of a transfer that was not begun.
func (p *Peer) refuse(op TransferOp, err error) error {
	return &TransferError{Op: op, Peer: p.addr, Retriable: retriable(err), Fenced: true, Err: err}
}

// retriable reports whether an error leaves the request itself sound.
func retriable(err error) bool {
	for _, e := range []error{
		ErrPeerDown, ErrAborted, ErrCanceled, ErrBusy, ErrNotifyFull, ErrDisconnected, cq.ErrRetryExceeded, cq.ErrRNRRetryExceeded, cq.ErrFlushed,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, e) && !errors.Is(err, ErrStale) {
			return true
		}
	}
	return false
}

// Read copies a piece of the peer's memory to local memory and returns when it is
// there.
func (p *Peer) Read(ctx context.Context, d Desc, flags ...TransferFlags) error {
	return p.one(ctx, Read, d, 0, flags)
}

// Write copies a piece of local memory to the peer's and returns when it is there:
// in the peer's memory, for whoever there learns of it.
func (p *Peer) Write(ctx context.Context, d Desc, flags ...TransferFlags) error {
	return p.one(ctx, Write, d, 0, flags)
}

// WriteImm is Write that tells the peer imm, see [Peer.Notifications], when the
// bytes are there. d may be empty.
func (p *Peer) WriteImm(ctx context.Context, d Desc, imm uint32, flags ...TransferFlags) error {
	return p.one(ctx, WriteImm, d, imm, flags)
}

func (p *Peer) one(ctx context.Context, op TransferOp, d Desc, imm uint32, flags []TransferFlags) error {
	descs := [1]Desc{d}
	_, err := p.do(ctx, &Transfer{Op: op, Imm: imm, Flags: union(flags)}, descs[:])
	return err
}

// Transfer does op for a list of pieces and returns when all are done.
func (p *Peer) Transfer(ctx context.Context, op TransferOp, descs []Desc, flags ...TransferFlags) error {
	_, err := p.do(ctx, &Transfer{Op: op, Flags: union(flags)}, descs)
	return err
}

// CompareSwap replaces the word at off of r by value if it is expected, and returns
// what it was. off must be a multiple of 8. The word is a number in the peer's own
// byte order.
func (p *Peer) CompareSwap(ctx context.Context, r *RemoteRegion, off, expected, value uint64, flags ...TransferFlags) (uint64, error) {
	descs := [1]Desc{{Remote: r, RemoteOff: off}}
	return p.do(ctx, &Transfer{Op: CompareSwap, Compare: expected, Operand: value, Flags: union(flags)}, descs[:])
}

// FetchAdd adds delta to the word at off of r, modulo 2^64, and returns what it
// was.
func (p *Peer) FetchAdd(ctx context.Context, r *RemoteRegion, off, delta uint64, flags ...TransferFlags) (uint64, error) {
	descs := [1]Desc{{Remote: r, RemoteOff: off}}
	return p.do(ctx, &Transfer{Op: FetchAdd, Operand: delta, Flags: union(flags)}, descs[:])
}

// AtomicStore replaces the word at off of r by value, so that nobody sees half of
// it.
func (p *Peer) AtomicStore(ctx context.Context, r *RemoteRegion, off, value uint64, flags ...TransferFlags) error {
	descs := [1]Desc{{Remote: r, RemoteOff: off}}
	_, err := p.do(ctx, &Transfer{Op: AtomicStore, Operand: value, Flags: union(flags)}, descs[:])
	return err
}

// ReadAsync begins a Read.
func (p *Peer) ReadAsync(d Desc, flags ...TransferFlags) (*Handle, error) {
	return p.startOne(Read, d, 0, flags)
}

// WriteAsync begins a Write.
func (p *Peer) WriteAsync(d Desc, flags ...TransferFlags) (*Handle, error) {
	return p.startOne(Write, d, 0, flags)
}

// WriteImmAsync begins a WriteImm.
func (p *Peer) WriteImmAsync(d Desc, imm uint32, flags ...TransferFlags) (*Handle, error) {
	return p.startOne(WriteImm, d, imm, flags)
}

func (p *Peer) startOne(op TransferOp, d Desc, imm uint32, flags []TransferFlags) (*Handle, error) {
	descs := [1]Desc{d}
	return p.start(&Transfer{Op: op, Imm: imm, Flags: union(flags)}, descs[:])
}

// TransferAsync begins a Transfer.
func (p *Peer) TransferAsync(op TransferOp, descs []Desc, flags ...TransferFlags) (*Handle, error) {
	return p.start(&Transfer{Op: op, Flags: union(flags)}, descs)
}

// CompareSwapAsync begins a CompareSwap; [Handle.Result] is what the word was.
func (p *Peer) CompareSwapAsync(r *RemoteRegion, off, expected, value uint64, flags ...TransferFlags) (*Handle, error) {
	descs := [1]Desc{{Remote: r, RemoteOff: off}}
	return p.start(&Transfer{Op: CompareSwap, Compare: expected, Operand: value, Flags: union(flags)}, descs[:])
}

// FetchAddAsync begins a FetchAdd; [Handle.Result] is what the word was.
func (p *Peer) FetchAddAsync(r *RemoteRegion, off, delta uint64, flags ...TransferFlags) (*Handle, error) {
	descs := [1]Desc{{Remote: r, RemoteOff: off}}
	return p.start(&Transfer{Op: FetchAdd, Operand: delta, Flags: union(flags)}, descs[:])
}

func union(flags []TransferFlags) (all TransferFlags) {
	for _, f := range flags {
		all |= f
	}
	return all
}

// fullness returns what is closed when a peer without room for notifications may
// have some, nil for any other error.
func (p *Peer) fullness(err error) <-chan struct{} {
	if !errors.Is(err, ErrNotifyFull) {
		return nil
	}
	return p.inc.vacancy()
}
