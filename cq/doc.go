// Package cq owns completions: the record of what became of a work request, its
// status, and the queue in which records wait for the application.
//
// # Who calls it
//
// Queue pairs complete into a [Sink], most often a [Queue], under their own
// lock; the queue's lock is a leaf below it. Applications call Poll, Wait, Arm
// and Events from any goroutine. The package starts no goroutines and reads no
// clock. A queue runs its [Driver] with no lock held.
//
// Complete, Poll and Wait allocate nothing once the ring has grown to what is
// used of it.
package cq
