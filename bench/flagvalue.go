package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// The list types are flag values (spf13/pflag's Value, or flag.Value): Set
// takes a list separated by commas and replaces what was there.
type (
	// OpList is a list of operations.
	OpList []Op
	// SizeList is a list of sizes in bytes, written 64, 4k, 64KiB, 1MiB.
	SizeList []int
	// CountList is a list of whole numbers from Min to Max.
	CountList struct {
		// Flag names the flag in errors.
		Flag     string
		Values   []int
		Min, Max int
		// Zero is what 0 stands for, "" when it is not allowed.
		Zero string
	}
	// BaselineList is a list of baselines; "none" is the empty list.
	BaselineList []Baseline
	// Size is one size in bytes of the flag it is named for.
	Size struct {
		Flag  string
		Bytes *int
	}
)

// Set reads a list of operations.
func (l *OpList) Set(s string) error {
	v, err := list(s, parseOp)
	if err == nil {
		*l = v
	}
	return err
}

// String writes the list as Set reads it.
func (l *OpList) String() string { return join(*l, Op.String) }

// Type is what usage shows.
func (l *OpList) Type() string { return "ops" }

// Set reads a list of sizes.
func (l *SizeList) Set(s string) error {
	v, err := list(s, func(s string) (int, error) { return parseSize("size", s) })
	if err == nil {
		*l = v
	}
	return err
}

// String writes the list as Set reads it.
func (l *SizeList) String() string { return join(*l, formatSize) }

// Type is what usage shows.
func (l *SizeList) Type() string { return "sizes" }

// Set reads a list of numbers.
func (l *CountList) Set(s string) error {
	v, err := list(s, l.parse)
	if err == nil {
		l.Values = v
	}
	return err
}

func (l *CountList) parse(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && (n == 0 && l.Zero != "" || n >= l.Min && n <= l.Max) {
		return n, nil
	}
	allowed := fmt.Sprintf("%d to %d", l.Min, l.Max)
	if l.Zero != "" {
		allowed += ", or 0 for " + l.Zero
	}
	return 0, &FlagError{Flag: l.Flag, Given: strconv.Quote(s), Allowed: allowed, Do: "give whole numbers, several separated by commas"}
}

// String writes the list as Set reads it.
func (l *CountList) String() string { return join(l.Values, strconv.Itoa) }

// Type is what usage shows.
func (l *CountList) Type() string { return "numbers" }

// Set reads a list of baselines.
func (l *BaselineList) Set(s string) error {
	if strings.TrimSpace(s) == "none" {
		*l = BaselineList{}
		return nil
	}
	v, err := list(s, parseBaseline)
	if err == nil {
		*l = v
	}
	return err
}

// String writes the list as Set reads it, "" for the default.
func (l *BaselineList) String() string {
	switch {
	case *l == nil:
		return ""
	case len(*l) == 0:
		return "none"
	}
	return join(*l, func(b Baseline) string { return string(b) })
}

// Type is what usage shows.
func (l *BaselineList) Type() string { return "baselines" }

// Set reads one size.
func (v *Size) Set(s string) error {
	n, err := parseSize(v.Flag, s)
	if err == nil {
		*v.Bytes = n
	}
	return err
}

// String writes the size as Set reads it.
func (v *Size) String() string {
	if v.Bytes == nil {
		return ""
	}
	return formatSize(*v.Bytes)
}

// Type is what usage shows.
func (v *Size) Type() string { return "size" }

// list reads items separated by commas and drops repetitions.
func list[T comparable](s string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	seen := map[T]bool{}
	for item := range strings.SplitSeq(s, ",") {
		v, err := parse(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out, nil
}

func join[T any](l []T, str func(T) string) string {
	s := make([]string, len(l))
	for i, v := range l {
		s[i] = str(v)
	}
	return strings.Join(s, ",")
}
