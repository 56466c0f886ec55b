package hixl

import "bytes"

// Private data of REQ and REP ends in a tag when there is room for it, by which
// two ends of this package know each other: what they sent has its exact length
// again, and their packets are checked more strictly (Address.Hixl). Others see
// eight bytes that are not zero behind data whose length they know themselves, as
// RDMA CM obliges them to (§5.5). A REP has it only if the REQ had.
//
//	0  length of the application's data
//	1  flags: bit 0, sends only the IPv4 identifications 0 to 127
//	2  version, 1
//	3  0
//	4  "hixl"
const (
	tagLen      = 8
	tagVersion  = 1
	tagSmallIDs = 1
)

var tagMagic = []byte("hixl")

// Room for private data, in bytes.
const (
	// MaxDialData is how much a Dial can tell the other end. Beyond
	// [MaxDialData] - 8 there is no room for the mark by which this package knows
	// itself, so the other end takes this one for a foreign stack.
	MaxDialData = 56
	// MaxAcceptData is how much Accept can answer, with the same remark.
	MaxAcceptData = 196
	// MaxRejectData is how much Reject can tell.
	MaxRejectData = 148
	// MaxResolveData is how much ResolveUD can tell, MaxAnswerData its answer.
	MaxResolveData = 180
	MaxAnswerData  = 136
)

// tagged returns user data for a private data area of size bytes, with the tag if
// there is room.
func tagged(user []byte, size int) []byte {
	if len(user) > size-tagLen {
		return user
	}
	b := make([]byte, size)
	copy(b, user)
	t := b[size-tagLen:]
	t[0], t[1], t[2] = byte(len(user)), tagSmallIDs, tagVersion
	copy(t[4:], tagMagic)
	return b
}

// untag takes a private data area apart. Without a valid tag all of it is the
// peer's.
func untag(b []byte) (user []byte, hixl, smallIDs bool) {
	if len(b) < tagLen {
		return b, false, false
	}
	room := len(b) - tagLen
	t := b[room:]
	if t[2] != tagVersion || t[3] != 0 || int(t[0]) > room || !bytes.Equal(t[4:], tagMagic) {
		return b, false, false
	}
	return b[:t[0]:t[0]], true, t[1]&tagSmallIDs != 0
}
