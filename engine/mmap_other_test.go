//go:build !unix

package engine_test

import "testing"

// mapMemory returns memory of the heap, which the caller keeps: only Linux asks
// where an address lies.
func mapMemory(_ testing.TB, n int) []byte { return make([]byte, n) }
