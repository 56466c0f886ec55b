package roce_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/roce"
)

// opcodeRow is a row of §1.9 written down a second time, as the page has it:
// headers in wire order, payload rule, and how it meets receive work requests.
type opcodeRow struct {
	op      roce.Opcode
	name    string
	headers roce.Hdr
	ext     int
	payload roce.PayloadRule
	flags   string // Q request, R response, b begins, e ends a message, t takes, c completes a receive
}

var rcRows = []opcodeRow{
	{0x00, "SEND_FIRST", 0, 0, roce.PayloadFull, "Qbt"},
	{0x01, "SEND_MIDDLE", 0, 0, roce.PayloadFull, "Q"},
	{0x02, "SEND_LAST", 0, 0, roce.PayloadSome, "Qec"},
	{0x03, "SEND_LAST_IMM", roce.HasImm, 4, roce.PayloadSome, "Qec"},
	{0x04, "SEND_ONLY", 0, 0, roce.PayloadAny, "Qbetc"},
	{0x05, "SEND_ONLY_IMM", roce.HasImm, 4, roce.PayloadAny, "Qbetc"},
	{0x06, "WRITE_FIRST", roce.HasRETH, 16, roce.PayloadFull, "Qb"},
	{0x07, "WRITE_MIDDLE", 0, 0, roce.PayloadFull, "Q"},
	{0x08, "WRITE_LAST", 0, 0, roce.PayloadSome, "Qe"},
	{0x09, "WRITE_LAST_IMM", roce.HasImm, 4, roce.PayloadSome, "Qetc"},
	{0x0A, "WRITE_ONLY", roce.HasRETH, 16, roce.PayloadAny, "Qbe"},
	{0x0B, "WRITE_ONLY_IMM", roce.HasRETH | roce.HasImm, 20, roce.PayloadAny, "Qbetc"},
	{0x0C, "READ_REQ", roce.HasRETH, 16, roce.PayloadNone, "Qbe"},
	{0x0D, "READ_RESP_FIRST", roce.HasAETH, 4, roce.PayloadFull, "Rb"},
	{0x0E, "READ_RESP_MIDDLE", 0, 0, roce.PayloadFull, "R"},
	{0x0F, "READ_RESP_LAST", roce.HasAETH, 4, roce.PayloadSome, "Re"},
	{0x10, "READ_RESP_ONLY", roce.HasAETH, 4, roce.PayloadAny, "Rbe"},
	{0x11, "ACK", roce.HasAETH, 4, roce.PayloadNone, "Rbe"},
	{0x12, "ATOMIC_ACK", roce.HasAETH | roce.HasAtomicAck, 12, roce.PayloadNone, "Rbe"},
	{0x13, "CMP_SWAP", roce.HasAtomicETH, 28, roce.PayloadNone, "Qbe"},
	{0x14, "FETCH_ADD", roce.HasAtomicETH, 28, roce.PayloadNone, "Qbe"},
	{0x16, "SEND_LAST_INV", roce.HasIETH, 4, roce.PayloadSome, "Qec"},
	{0x17, "SEND_ONLY_INV", roce.HasIETH, 4, roce.PayloadAny, "Qbetc"},
	{0x1C, "FLUSH", roce.HasFETH | roce.HasRETH, 20, roce.PayloadNone, "Qbe"},
	{0x1D, "ATOMIC_WRITE", roce.HasRETH, 16, roce.PayloadEight, "Qbe"},
}

// knownRows returns all opcodes that are decoded.
func knownRows() map[roce.Opcode]opcodeRow {
	rows := map[roce.Opcode]opcodeRow{
		0x64: {0x64, "UD SEND_ONLY", roce.HasDETH, 8, roce.PayloadAny, "Qbetc"},
		0x65: {0x65, "UD SEND_ONLY_IMM", roce.HasDETH | roce.HasImm, 12, roce.PayloadAny, "Qbetc"},
		0x81: {0x81, "CNP", roce.HasCNP, 16, roce.PayloadNone, ""},
	}
	for _, r := range rcRows {
		add := func(prefix string, base roce.Opcode, has roce.Hdr, ext int) {
			rows[base|r.op] = opcodeRow{base | r.op, prefix + r.name, r.headers | has, r.ext + ext, r.payload, r.flags}
		}
		add("RC ", 0, 0, 0)
		if r.op <= 0x0B {
			add("UC ", 0x20, 0, 0)
		}
		if r.op <= 0x17 {
			if r.flags[0] == 'Q' {
				add("XRC ", 0xA0, roce.HasXRCETH, 4)
			} else {
				add("XRC ", 0xA0, 0, 0)
			}
		}
	}
	return rows
}

func TestOpcodeTable(t *testing.T) { // §1.9
	known := knownRows()
	require.Len(t, known, 25+12+2+1+23)
	for i := range 256 {
		op := roce.Opcode(i)
		row, ok := known[op]
		require.Equal(t, ok, op.Known(), "%#x", i)
		require.Equal(t, roce.Transport(i>>5), op.Transport())
		require.Equal(t, row.headers, op.Headers(), "%v", op)
		require.Equal(t, row.ext, op.HeaderLen(), "%v", op)
		require.Equal(t, flagsOf(row.flags), opcodeFlags(op), "%v", op)
		require.LessOrEqual(t, roce.BTHLen+op.HeaderLen(), roce.MaxHeaderLen)
		if ok {
			require.Equal(t, row.name, op.String())
			require.Equal(t, row.payload, op.Payload(), "%v", op)
			require.True(t, op.Has(row.headers))
		}
	}
	require.Equal(t, roce.MaxHeaderLen, roce.BTHLen+roce.OpXRCCmpSwap.HeaderLen())
}

func flagsOf(s string) (set [6]bool) {
	for _, c := range s {
		for i, f := range "QRbetc" {
			set[i] = set[i] || c == f
		}
	}
	return set
}

func opcodeFlags(op roce.Opcode) [6]bool {
	return [6]bool{op.IsRequest(), op.IsResponse(), op.Begins(), op.Ends(), op.TakesReceive(), op.CompletesReceive()}
}

func TestOpcodeConstants(t *testing.T) {
	for name, op := range map[string]roce.Opcode{
		"RC SEND_FIRST": roce.OpSendFirst, "RC SEND_MIDDLE": roce.OpSendMiddle, "RC SEND_LAST": roce.OpSendLast,
		"RC SEND_LAST_IMM": roce.OpSendLastImm, "RC SEND_ONLY": roce.OpSendOnly, "RC SEND_ONLY_IMM": roce.OpSendOnlyImm,
		"RC WRITE_FIRST": roce.OpWriteFirst, "RC WRITE_MIDDLE": roce.OpWriteMiddle, "RC WRITE_LAST": roce.OpWriteLast,
		"RC WRITE_LAST_IMM": roce.OpWriteLastImm, "RC WRITE_ONLY": roce.OpWriteOnly, "RC WRITE_ONLY_IMM": roce.OpWriteOnlyImm,
		"RC READ_REQ": roce.OpReadRequest, "RC READ_RESP_FIRST": roce.OpReadRespFirst, "RC READ_RESP_MIDDLE": roce.OpReadRespMiddle,
		"RC READ_RESP_LAST": roce.OpReadRespLast, "RC READ_RESP_ONLY": roce.OpReadRespOnly, "RC ACK": roce.OpAcknowledge,
		"RC ATOMIC_ACK": roce.OpAtomicAck, "RC CMP_SWAP": roce.OpCmpSwap, "RC FETCH_ADD": roce.OpFetchAdd,
		"RC SEND_LAST_INV": roce.OpSendLastInv, "RC SEND_ONLY_INV": roce.OpSendOnlyInv, "RC FLUSH": roce.OpFlush,
		"RC ATOMIC_WRITE": roce.OpAtomicWrite,
		"UC SEND_FIRST":   roce.OpUCSendFirst, "UC SEND_MIDDLE": roce.OpUCSendMiddle, "UC SEND_LAST": roce.OpUCSendLast,
		"UC SEND_LAST_IMM": roce.OpUCSendLastImm, "UC SEND_ONLY": roce.OpUCSendOnly, "UC SEND_ONLY_IMM": roce.OpUCSendOnlyImm,
		"UC WRITE_FIRST": roce.OpUCWriteFirst, "UC WRITE_MIDDLE": roce.OpUCWriteMiddle, "UC WRITE_LAST": roce.OpUCWriteLast,
		"UC WRITE_LAST_IMM": roce.OpUCWriteLastImm, "UC WRITE_ONLY": roce.OpUCWriteOnly, "UC WRITE_ONLY_IMM": roce.OpUCWriteOnlyImm,
		"UD SEND_ONLY": roce.OpUDSendOnly, "UD SEND_ONLY_IMM": roce.OpUDSendOnlyImm, "CNP": roce.OpCNP,
		"XRC SEND_FIRST": roce.OpXRCSendFirst, "XRC SEND_MIDDLE": roce.OpXRCSendMiddle, "XRC SEND_LAST": roce.OpXRCSendLast,
		"XRC SEND_LAST_IMM": roce.OpXRCSendLastImm, "XRC SEND_ONLY": roce.OpXRCSendOnly, "XRC SEND_ONLY_IMM": roce.OpXRCSendOnlyImm,
		"XRC WRITE_FIRST": roce.OpXRCWriteFirst, "XRC WRITE_MIDDLE": roce.OpXRCWriteMiddle, "XRC WRITE_LAST": roce.OpXRCWriteLast,
		"XRC WRITE_LAST_IMM": roce.OpXRCWriteLastImm, "XRC WRITE_ONLY": roce.OpXRCWriteOnly, "XRC WRITE_ONLY_IMM": roce.OpXRCWriteOnlyImm,
		"XRC READ_REQ": roce.OpXRCReadRequest, "XRC READ_RESP_FIRST": roce.OpXRCReadRespFirst,
		"XRC READ_RESP_MIDDLE": roce.OpXRCReadRespMiddle, "XRC READ_RESP_LAST": roce.OpXRCReadRespLast,
		"XRC READ_RESP_ONLY": roce.OpXRCReadRespOnly, "XRC ACK": roce.OpXRCAcknowledge, "XRC ATOMIC_ACK": roce.OpXRCAtomicAck,
		"XRC CMP_SWAP": roce.OpXRCCmpSwap, "XRC FETCH_ADD": roce.OpXRCFetchAdd, "XRC SEND_LAST_INV": roce.OpXRCSendLastInv,
		"XRC SEND_ONLY_INV": roce.OpXRCSendOnlyInv,
	} {
		require.Equal(t, name, op.String())
	}
	require.Equal(t, "opcode 0x15", roce.Opcode(0x15).String())
	require.Equal(t, "RD SEND_FIRST", roce.Opcode(0x40).String())
	require.Equal(t, "transport 6", roce.Transport(6).String())
	require.Equal(t, "transport 99", roce.Transport(99).String())
}
