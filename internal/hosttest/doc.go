// Package hosttest says what the host that runs a test has. Where something is
// missing that it may lack, the test is skipped and says what; where the host should
// have it, the test fails. What there is once on a host, tests take in turns, and a
// host that stands still for a while fails none. Tests call it, from the test's
// goroutine.
package hosttest
