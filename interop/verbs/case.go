package verbs

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/gohixl/hixl"
)

// Case describes what is done. In text it is KEY=VALUE words, of which those with
// the default are left out; the keys are the tags of the fields.
type Case struct {
	Op     string `key:"op"`     // send send-imm send-inv write write-imm read cas faa
	QP     string `key:"qp"`     // rc uc ud
	Access string `key:"access"` // to the passive end's memory: of w r a, or -
	Size   int    `key:"size"`   // bytes a message
	Count  int    `key:"count"`  // messages
	MTU    int    `key:"mtu"`    // path MTU in bytes
	Family int    `key:"family"` // 4 or 6
	PSN    int    `key:"psn"`    // first PSN of the active end; -1 is random
	Batch  bool   `key:"batch"`  // post all at once
	Inline bool   `key:"inline"` // send inline
	SRQ    bool   `key:"srq"`    // receive from a shared queue
	// Recv is the bytes of each receive, -1 a slot; RecvDelay the ms until receives
	// are posted.
	Recv      int `key:"recv"`
	RecvDelay int `key:"recv-delay"`
	Reads     int `key:"reads"` // READs and atomics in flight
	// Timeout to RNRRetries are as verbs count them; RNRTimer is the passive end's.
	Timeout    int  `key:"timeout"`
	Retries    int  `key:"retries"`
	RNRTimer   int  `key:"rnr-timer"`
	RNRRetries int  `key:"rnr-retries"`
	WrongKey   bool `key:"wrong-key"`  // use an rkey that nobody gave
	WrongQKey  bool `key:"wrong-qkey"` // UD: another Q_Key than the peer's
	Offset     int  `key:"offset"`     // added to the remote address
	Patience   int  `key:"patience"`   // ms without news the passive end waits for what is missing
}

// Default is the case of no words.
var Default = Case{
	Op: "write", QP: "rc", Access: "wra", Size: 64, Count: 1, MTU: 1024, Family: 4, PSN: -1, Recv: -1, Reads: 16,
	Timeout: 14, Retries: 7, RNRTimer: 12, RNRRetries: 7, Patience: 300,
}

// ErrCase is what words that describe no case unwrap to.
var ErrCase = errors.New("verbs: no such case")

// Limits of a case, so that a peer cannot ask for the machine.
const (
	maxSize   = 16 << 20
	maxCount  = 16384
	maxMemory = 256 << 20
)

// Parse reads a case.
func Parse(text string) (Case, error) {
	c := Default
	v := reflect.ValueOf(&c).Elem()
	for word := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(word, "=")
		f, known := field(v, key)
		if !known {
			return c, fmt.Errorf("%w: key %q", ErrCase, key)
		}
		if err := put(f, value); err != nil {
			return c, fmt.Errorf("%w: %s: %w", ErrCase, word, err)
		}
	}
	return c, c.check()
}

func field(v reflect.Value, key string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("key") == key {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func put(f reflect.Value, value string) error {
	if f.Kind() == reflect.String {
		f.SetString(value)
		return nil
	}
	n, err := strconv.ParseInt(value, 0, 32)
	if f.Kind() == reflect.Bool {
		f.SetBool(n != 0)
	} else {
		f.SetInt(n)
	}
	return err
}

// String returns the words, which Parse and the tool read.
func (c Case) String() string {
	var words []string
	v, def := reflect.ValueOf(c), reflect.ValueOf(Default)
	for i := range v.NumField() {
		if v.Field(i).Equal(def.Field(i)) {
			continue
		}
		value := fmt.Sprint(v.Field(i))
		switch value {
		case "true":
			value = "1"
		case "false":
			value = "0"
		}
		words = append(words, v.Type().Field(i).Tag.Get("key")+"="+value)
	}
	return strings.Join(words, " ")
}

func (c *Case) check() error {
	_, known := operations[c.Op]
	_, service := services[c.QP]
	switch {
	case !known || !service || c.Family != 4 && c.Family != 6:
		return fmt.Errorf("%w: op=%s qp=%s family=%d", ErrCase, c.Op, c.QP, c.Family)
	case c.Size < 0 || c.Size > maxSize || c.Count < 1 || c.Count > maxCount || c.Count*c.stride() > maxMemory:
		return fmt.Errorf("%w: %d messages of %d bytes", ErrCase, c.Count, c.Size)
	}
	return nil
}

var operations = map[string]hixl.Op{
	"send": hixl.OpSend, "send-imm": hixl.OpSendImm, "send-inv": hixl.OpSendInv,
	"write": hixl.OpWrite, "write-imm": hixl.OpWriteImm, "read": hixl.OpRead,
	"cas": hixl.OpCmpSwap, "faa": hixl.OpFetchAdd,
}

var services = map[string]hixl.Type{"rc": hixl.RC, "uc": hixl.UC, "ud": hixl.UD}

func (c *Case) twoSided() bool { return strings.HasPrefix(c.Op, "send") }
func (c *Case) atomic() bool   { return c.Op == "cas" || c.Op == "faa" }

// Receives reports whether the passive end needs receives.
func (c *Case) Receives() bool { return c.twoSided() || c.Op == "write-imm" }

// Immediate is what message id carries, if the operation has one.
func (c *Case) Immediate(id int) (imm uint32, has bool) {
	const first = 0xcafe0000
	return first + uint32(id), strings.HasSuffix(c.Op, "-imm")
}

// access is what the passive end's region grants.
func (c *Case) access() hixl.Access {
	a := hixl.LocalWrite
	for letter, right := range map[string]hixl.Access{"w": hixl.RemoteWrite, "r": hixl.RemoteRead, "a": hixl.RemoteAtomic} {
		if strings.Contains(c.Access, letter) {
			a |= right
		}
	}
	return a
}
