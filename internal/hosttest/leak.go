package hosttest

import "go.uber.org/goleak"

// leakTries is how often goroutines are looked at, half a second each.
const leakTries = 300

// VerifyTestMain is goleak's, which gives goroutines less than half a second to end,
// with more patience: on a machine that stands still the last of them may be late.
func VerifyTestMain(m goleak.TestingM, options ...goleak.Option) {
	goleak.VerifyTestMain(patient{m}, options...)
}

type patient struct{ goleak.TestingM }

func (p patient) Run() int {
	code := p.TestingM.Run()
	if code == 0 {
		AwaitNoLeaks()
	}
	return code
}

// AwaitNoLeaks returns when no goroutine is left but those of the options, or after a
// few minutes: verify it then.
func AwaitNoLeaks(options ...goleak.Option) {
	for range leakTries {
		if goleak.Find(options...) == nil {
			return
		}
	}
}
