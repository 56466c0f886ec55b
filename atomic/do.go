package atomic

import (
	"errors"

	"github.com/gohixl/hixl/device"
)

// Do executes op on mem, natively or emulated. done, errors, token, completer
// and ownership are as in device.Memory's Atomic, except that ErrNoAtomic is
// never returned.
func Do(mem device.Memory, op *device.AtomicOp, token uint64, c device.Completer) (done bool, err error) {
	done, err = mem.Atomic(op, token, c)
	if err == nil || !errors.Is(err, device.ErrNoAtomic) {
		return done, err
	}
	if err := device.CheckAtomic(mem.Size(), device.AddressOf(mem), op); err != nil {
		return true, err
	}
	return emulate(mem, op, token, c)
}
