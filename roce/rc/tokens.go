package rc

// Tokens name what Commit and Fetched report on: a kind in the top bits, a
// sequence number below.
const (
	tokenShift            = 60
	tokenRead      uint64 = 1 << tokenShift // READ or atomic data into a send work request's spans
	tokenPlace     uint64 = 2 << tokenShift // a responder's placement or atomic
	tokenSend      uint64 = 3 << tokenShift // payload of a request packet
	tokenReadReply uint64 = 4 << tokenShift // payload of a READ response
	tokenSeq       uint64 = 1<<tokenShift - 1
)
