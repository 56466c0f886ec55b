package ascend

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gohixl/hixl/device"
)

// Finding is the answer to one question about a host and its NPU.
type Finding struct {
	Name string // stable key, such as "ascend_mapping"
	// OK is false for what is missing or does not work; Limited for what works, and
	// less well than it could.
	OK, Limited bool
	Value       string // what was found
	Cost        string // what its lack costs; "" when OK
	Remedy      string // how to get it; "" when OK
}

// Examine tries everything that this package uses on the device that c names, and
// says what works. It allocates some 40 MiB for a moment, moves a few hundred, and
// changes nothing. When there is no runtime, that is its one finding.
func Examine(c Config) []Finding {
	d, err := Open(c)
	if err != nil {
		f := Finding{Name: "ascend_runtime", Value: err.Error(), Cost: "no device memory; everything else works"}
		var missing *LibraryError
		if f.Remedy = "see docs/ascend.md"; errors.As(err, &missing) {
			f.Value, f.Remedy = missing.Library+" was not found: "+strings.Join(missing.Tried, "; "), missing.Remedy
		}
		return []Finding{f}
	}
	x := &examiner{d: d}
	x.all()
	if err := d.Close(); err != nil {
		x.fail("ascend_close", err, "device memory may be lost until the process ends")
	}
	return x.found
}

// examiner collects findings.
type examiner struct {
	d     *Device
	found []Finding
}

func (x *examiner) good(name, format string, args ...any) {
	x.found = append(x.found, Finding{Name: name, OK: true, Value: fmt.Sprintf(format, args...)})
}

func (x *examiner) limited(name, value, cost, remedy string) {
	x.found = append(x.found, Finding{Name: name, Limited: true, Value: value, Cost: cost, Remedy: remedy})
}

func (x *examiner) fail(name string, err error, cost string) {
	x.found = append(x.found, Finding{Name: name, Value: err.Error(), Cost: cost, Remedy: "see docs/ascend.md"})
}

func (x *examiner) all() {
	i, c := x.d.Info(), x.d.Caps()
	x.good("ascend_runtime", "%s, %s, version %s", i.Name, i.Model, i.Version)
	if free, total, err := x.d.Memory(); err != nil {
		x.fail("ascend_memory", err, "nothing but this line")
	} else {
		x.good("ascend_memory", "%d of %d MiB free", free>>20, total>>20)
	}
	x.mapping(c)
	for _, q := range []struct {
		name, what, cost string
		has              bool
	}{
		{"ascend_callbacks", "aclrtLaunchHostFunc", "ends of copies are asked for, some 50 µs later", c.Callbacks},
		{"ascend_batch", "aclrtMemcpyBatchAsync", "scattered messages cost a call each", c.Batch},
		{"ascend_values", "aclrtValueWrite and aclrtValueWait", "streams cannot wait for flags in memory", c.Values},
	} {
		if q.has {
			x.good(q.name, "%s", q.what)
		} else {
			x.limited(q.name, q.what+" is not in this release", q.cost, "a newer CANN release")
		}
	}
	x.copies()
}

func (x *examiner) mapping(c device.Caps) {
	if c.Mapping != "" {
		x.good("ascend_mapping", "by %s", c.Mapping)
		return
	}
	x.limited("ascend_mapping", "none: "+strings.ReplaceAll(x.d.NoMapping(), "\n", "; "),
		"small messages and atomics take a copy each, some 20 µs", "the driver's library, and a host whose PCIe BAR covers device memory")
}

// copies moves a pattern in and out and measures large copies.
func (x *examiner) copies() {
	const size = 16 << 20
	in, out, err := x.d.MeasureCopies(size)
	if err != nil {
		x.fail("ascend_copies", err, "device memory cannot be used")
		return
	}
	x.good("ascend_copies", "%.2f GB/s to the device, %.2f GB/s from it, in pieces of %d MiB", rate(size, in), rate(size, out), size>>20)
}

// rate is in bytes a nanosecond, that is in gigabytes a second.
func rate(n int, d time.Duration) float64 { return float64(n) / float64(max(d, 1)) }

// MeasureCopies moves size bytes to the device and back, compares them, and tells how
// long each way took.
func (d *Device) MeasureCopies(size int) (in, out time.Duration, err error) {
	b, err := d.Alloc(uint64(size), device.AllocOptions{})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, d.Free(b)) }()
	var host [2][]byte
	for i := range host {
		if host[i], err = d.AllocHost(size); err != nil {
			return 0, 0, err
		}
		defer func() { err = errors.Join(err, d.FreeHost(host[i])) }()
	}
	for i := range host[0] {
		host[0][i] = byte(i*31 + i>>12)
	}
	s, err := d.NewStream(0)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.Destroy()) }()
	timed := func(c device.Copy) time.Duration {
		start := time.Now()
		err = errors.Join(err, s.Copy(c), s.Sync(10*time.Second))
		return time.Since(start)
	}
	for range 2 { // the first warms up
		in = timed(device.Copy{Dir: device.In, Dev: b.Addr, Host: host[0]})
		out = timed(device.Copy{Dir: device.Out, Dev: b.Addr, Host: host[1]})
	}
	if err == nil && !bytes.Equal(host[0], host[1]) {
		err = errors.New("what was copied out is not what was copied in")
	}
	return in, out, err
}
