package dump

import "fmt"

// Summary counts what a capture held.
type Summary struct {
	Packets   uint64 `json:"packets"`   // all of them, other traffic too
	RoCE      uint64 `json:"roce"`      // RoCEv2 packets that decoded
	ICRCOK    uint64 `json:"icrc_ok"`   // of these, with the right ICRC
	ICRCBad   uint64 `json:"icrc_bad"`  // of these, with a wrong one
	Malformed uint64 `json:"malformed"` // to UDP port 4791, but no packet
}

// String returns the counts as the tool's last line has them.
func (s Summary) String() string {
	return fmt.Sprintf("packets=%d roce=%d icrc_ok=%d icrc_bad=%d malformed=%d",
		s.Packets, s.RoCE, s.ICRCOK, s.ICRCBad, s.Malformed)
}
