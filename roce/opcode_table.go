package roce

type opFlags uint8

const (
	opKnown opFlags = 1 << iota
	opRequest
	opResponse
	opBegins
	opEnds
	opTakes
	opCompletes
)

// opcodeInfo is all that the rest of the package knows about an opcode.
type opcodeInfo struct {
	name    string
	has     Hdr
	flags   opFlags
	ext     uint8 // bytes of the headers in has
	payload PayloadRule
}

// operation is a row of §1.9, common to the transports.
type operation struct {
	code    uint8 // the low five bits
	name    string
	has     Hdr
	payload PayloadRule
	flags   opFlags
}

const (
	first  = opRequest | opBegins
	middle = opRequest
	last   = opRequest | opEnds
	only   = opRequest | opBegins | opEnds
	whole  = opResponse | opBegins | opEnds
)

var operations = []operation{
	{0x00, "SEND_FIRST", 0, PayloadFull, first | opTakes},
	{0x01, "SEND_MIDDLE", 0, PayloadFull, middle},
	{0x02, "SEND_LAST", 0, PayloadSome, last | opCompletes},
	{0x03, "SEND_LAST_IMM", HasImm, PayloadSome, last | opCompletes},
	{0x04, "SEND_ONLY", 0, PayloadAny, only | opTakes | opCompletes},
	{0x05, "SEND_ONLY_IMM", HasImm, PayloadAny, only | opTakes | opCompletes},
	{0x06, "WRITE_FIRST", HasRETH, PayloadFull, first},
	{0x07, "WRITE_MIDDLE", 0, PayloadFull, middle},
	{0x08, "WRITE_LAST", 0, PayloadSome, last},
	{0x09, "WRITE_LAST_IMM", HasImm, PayloadSome, last | opTakes | opCompletes},
	{0x0A, "WRITE_ONLY", HasRETH, PayloadAny, only},
	{0x0B, "WRITE_ONLY_IMM", HasRETH | HasImm, PayloadAny, only | opTakes | opCompletes},
	{0x0C, "READ_REQ", HasRETH, PayloadNone, only},
	{0x0D, "READ_RESP_FIRST", HasAETH, PayloadFull, opResponse | opBegins},
	{0x0E, "READ_RESP_MIDDLE", 0, PayloadFull, opResponse},
	{0x0F, "READ_RESP_LAST", HasAETH, PayloadSome, opResponse | opEnds},
	{0x10, "READ_RESP_ONLY", HasAETH, PayloadAny, whole},
	{0x11, "ACK", HasAETH, PayloadNone, whole},
	{0x12, "ATOMIC_ACK", HasAETH | HasAtomicAck, PayloadNone, whole},
	{0x13, "CMP_SWAP", HasAtomicETH, PayloadNone, only},
	{0x14, "FETCH_ADD", HasAtomicETH, PayloadNone, only},
	{0x16, "SEND_LAST_INV", HasIETH, PayloadSome, last | opCompletes},
	{0x17, "SEND_ONLY_INV", HasIETH, PayloadAny, only | opTakes | opCompletes},
	{0x1C, "FLUSH", HasFETH | HasRETH, PayloadNone, only},
	{0x1D, "ATOMIC_WRITE", HasRETH, PayloadEight, only},
}

// headerSizes are the bytes of each Hdr bit, by its number.
var headerSizes = [...]uint8{DETHLen, XRCETHLen, FETHLen, RETHLen, AtomicETHLen, AETHLen, AtomicAckLen, ImmLen, IETHLen, CNPLen}

var opcodes = makeOpcodes()

func makeOpcodes() (t [256]opcodeInfo) {
	set := func(tr Transport, op operation, has Hdr, flags opFlags) {
		info := opcodeInfo{name: tr.String() + " " + op.name, has: has, flags: flags, payload: op.payload}
		for i, size := range headerSizes {
			if has&(1<<i) != 0 {
				info.ext += size
			}
		}
		t[uint8(tr)<<5|op.code] = info
	}
	for _, op := range operations {
		set(RC, op, op.has, op.flags|opKnown)
		if op.code <= 0x0B {
			set(UC, op, op.has, op.flags|opKnown)
		}
		if op.code <= 0x14 {
			set(RD, op, 0, 0)
		}
		if op.code == 0x04 || op.code == 0x05 {
			set(UD, op, op.has|HasDETH, op.flags|opKnown)
		}
		if op.code <= 0x17 {
			has := op.has
			if op.flags&opRequest != 0 {
				has |= HasXRCETH
			}
			set(XRC, op, has, op.flags|opKnown)
		}
	}
	set(CNP, operation{code: 0x01}, HasCNP, opKnown)
	t[OpCNP].name = "CNP"
	return t
}
