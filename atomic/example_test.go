package atomic_test

import (
	"fmt"

	ratomic "github.com/gohixl/hixl/atomic"
	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/host"
)

func ExampleDo() {
	mem := host.New(make([]byte, 64))
	op := &device.AtomicOp{Kind: device.FetchAdd, Off: 8, Operand: 5}
	for range 2 {
		done, err := ratomic.Do(mem, op, 0, nil) // host memory is always done at once
		fmt.Println(op.Result, done, err)
	}
	// Output:
	// 0 true <nil>
	// 5 true <nil>
}
