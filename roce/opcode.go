package roce

import "fmt"

// Opcode is the first byte of a packet: transport in bits 7-5, operation in
// bits 4-0. Its methods answer from one table of all 256 values (§1.9).
type Opcode uint8

// Reliable connection.
const (
	OpSendFirst      Opcode = 0x00
	OpSendMiddle     Opcode = 0x01
	OpSendLast       Opcode = 0x02
	OpSendLastImm    Opcode = 0x03
	OpSendOnly       Opcode = 0x04
	OpSendOnlyImm    Opcode = 0x05
	OpWriteFirst     Opcode = 0x06
	OpWriteMiddle    Opcode = 0x07
	OpWriteLast      Opcode = 0x08
	OpWriteLastImm   Opcode = 0x09
	OpWriteOnly      Opcode = 0x0A
	OpWriteOnlyImm   Opcode = 0x0B
	OpReadRequest    Opcode = 0x0C
	OpReadRespFirst  Opcode = 0x0D
	OpReadRespMiddle Opcode = 0x0E
	OpReadRespLast   Opcode = 0x0F
	OpReadRespOnly   Opcode = 0x10 // the answer to FLUSH and ATOMIC WRITE too
	OpAcknowledge    Opcode = 0x11 // ACK, NAK and RNR NAK, by syndrome
	OpAtomicAck      Opcode = 0x12
	OpCmpSwap        Opcode = 0x13
	OpFetchAdd       Opcode = 0x14
	OpSendLastInv    Opcode = 0x16
	OpSendOnlyInv    Opcode = 0x17
	OpFlush          Opcode = 0x1C
	OpAtomicWrite    Opcode = 0x1D
)

// Unreliable connection: SEND and WRITE only.
const (
	OpUCSendFirst    Opcode = 0x20
	OpUCSendMiddle   Opcode = 0x21
	OpUCSendLast     Opcode = 0x22
	OpUCSendLastImm  Opcode = 0x23
	OpUCSendOnly     Opcode = 0x24
	OpUCSendOnlyImm  Opcode = 0x25
	OpUCWriteFirst   Opcode = 0x26
	OpUCWriteMiddle  Opcode = 0x27
	OpUCWriteLast    Opcode = 0x28
	OpUCWriteLastImm Opcode = 0x29
	OpUCWriteOnly    Opcode = 0x2A
	OpUCWriteOnlyImm Opcode = 0x2B
)

// Unreliable datagram, and the congestion notification packet.
const (
	OpUDSendOnly    Opcode = 0x64
	OpUDSendOnlyImm Opcode = 0x65
	OpCNP           Opcode = 0x81
)

// Extended reliable connection: the RC operations, requests with an XRCETH.
const (
	OpXRCSendFirst      Opcode = 0xA0
	OpXRCSendMiddle     Opcode = 0xA1
	OpXRCSendLast       Opcode = 0xA2
	OpXRCSendLastImm    Opcode = 0xA3
	OpXRCSendOnly       Opcode = 0xA4
	OpXRCSendOnlyImm    Opcode = 0xA5
	OpXRCWriteFirst     Opcode = 0xA6
	OpXRCWriteMiddle    Opcode = 0xA7
	OpXRCWriteLast      Opcode = 0xA8
	OpXRCWriteLastImm   Opcode = 0xA9
	OpXRCWriteOnly      Opcode = 0xAA
	OpXRCWriteOnlyImm   Opcode = 0xAB
	OpXRCReadRequest    Opcode = 0xAC
	OpXRCReadRespFirst  Opcode = 0xAD
	OpXRCReadRespMiddle Opcode = 0xAE
	OpXRCReadRespLast   Opcode = 0xAF
	OpXRCReadRespOnly   Opcode = 0xB0
	OpXRCAcknowledge    Opcode = 0xB1
	OpXRCAtomicAck      Opcode = 0xB2
	OpXRCCmpSwap        Opcode = 0xB3
	OpXRCFetchAdd       Opcode = 0xB4
	OpXRCSendLastInv    Opcode = 0xB6
	OpXRCSendOnlyInv    Opcode = 0xB7
)

// Transport is the service an opcode belongs to, bits 7-5 of it.
type Transport uint8

// The transports. RD is obsolete: its packets are named and dropped.
const (
	RC  Transport = 0
	UC  Transport = 1
	RD  Transport = 2
	UD  Transport = 3
	CNP Transport = 4 // the vendor space, of which only the CNP is in use
	XRC Transport = 5
)

var transportNames = [8]string{"RC", "UC", "RD", "UD", "CNP", "XRC", "transport 6", "transport 7"}

// String returns "RC", "UC", "RD", "UD", "CNP", "XRC" or "transport N".
func (t Transport) String() string {
	if int(t) < len(transportNames) {
		return transportNames[t]
	}
	return fmt.Sprintf("transport %d", uint8(t))
}

// Hdr is a set of extension headers.
type Hdr uint16

// The extension headers, in wire order.
const (
	HasDETH Hdr = 1 << iota
	HasXRCETH
	HasFETH
	HasRETH
	HasAtomicETH
	HasAETH
	HasAtomicAck
	HasImm
	HasIETH
	HasCNP // the 16 reserved bytes of a CNP (§1.11)
)

// PayloadRule says how many payload bytes packets of an opcode carry.
type PayloadRule uint8

// The rules of §1.9: none, M, L, O, and the eight bytes of an ATOMIC WRITE.
const (
	PayloadNone  PayloadRule = iota // 0
	PayloadFull                     // exactly the path MTU
	PayloadSome                     // 1 to the path MTU
	PayloadAny                      // 0 to the path MTU
	PayloadEight                    // exactly 8
)

// Known reports whether packets with the opcode are decoded. False for values
// nobody uses and for all of RD, which is obsolete.
func (o Opcode) Known() bool { return opcodes[o].flags&opKnown != 0 }

// Transport returns bits 7-5, whether the opcode is known or not.
func (o Opcode) Transport() Transport { return Transport(o >> 5) }

// IsRequest reports whether the packet goes from requester to responder.
func (o Opcode) IsRequest() bool { return opcodes[o].flags&opRequest != 0 }

// IsResponse reports whether the packet goes from responder to requester. A CNP
// is neither.
func (o Opcode) IsResponse() bool { return opcodes[o].flags&opResponse != 0 }

// Begins reports whether the packet is the first or only one of its message
// (READ responses count as a message of their own).
func (o Opcode) Begins() bool { return opcodes[o].flags&opBegins != 0 }

// Ends reports whether the packet is the last or only one of its message.
func (o Opcode) Ends() bool { return opcodes[o].flags&opEnds != 0 }

// TakesReceive reports whether the packet needs a receive work request of its
// own: SEND First and Only, WRITE with immediate Last and Only (§1.9).
func (o Opcode) TakesReceive() bool { return opcodes[o].flags&opTakes != 0 }

// CompletesReceive reports whether the packet completes a receive work request.
func (o Opcode) CompletesReceive() bool { return opcodes[o].flags&opCompletes != 0 }

// HeaderLen returns the bytes of extension headers after the BTH, 0 for an
// unknown opcode.
func (o Opcode) HeaderLen() int { return int(opcodes[o].ext) }

// Headers returns the set of extension headers.
func (o Opcode) Headers() Hdr { return opcodes[o].has }

// Has reports whether the opcode has all the headers of the set.
func (o Opcode) Has(h Hdr) bool { return opcodes[o].has&h == h }

// Payload returns the rule for the payload's length.
func (o Opcode) Payload() PayloadRule { return opcodes[o].payload }

// String returns transport and operation, as "RC SEND_FIRST" or "CNP"; for a
// value without a name "opcode 0x15".
func (o Opcode) String() string {
	if n := opcodes[o].name; n != "" {
		return n
	}
	return fmt.Sprintf("opcode %#02x", uint8(o))
}
