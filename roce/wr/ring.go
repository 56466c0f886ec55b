package wr

// Ring is a queue that grows by doubling and shrinks only when it is told to: its
// owner bounds its length. The index of an element never changes; Head ≤ index < Tail.
type Ring[T any] struct {
	ring       []T
	Head, Tail uint64
}

// Len is the number of elements.
func (q *Ring[T]) Len() uint64 { return q.Tail - q.Head }

// Has reports whether element i is in the queue.
func (q *Ring[T]) Has(i uint64) bool { return i-q.Head < q.Len() }

// At returns element i, which must be in the queue. The pointer holds until the
// next Push.
func (q *Ring[T]) At(i uint64) *T { return &q.ring[i&uint64(len(q.ring)-1)] }

// Push appends v and returns its place.
func (q *Ring[T]) Push(v T) *T {
	if q.Len() == uint64(len(q.ring)) {
		grown := Ring[T]{ring: make([]T, max(4, 2*len(q.ring))), Head: q.Head, Tail: q.Tail}
		for i := q.Head; i < q.Tail; i++ {
			*grown.At(i) = *q.At(i)
		}
		*q = grown
	}
	q.Tail++
	e := q.At(q.Tail - 1)
	*e = v
	return e
}

// Pop drops the oldest element.
func (q *Ring[T]) Pop() {
	var zero T
	*q.At(q.Head) = zero
	q.Head++
}

// Trim gives back the memory of an empty queue, which the next Push takes anew.
func (q *Ring[T]) Trim() {
	if q.Len() == 0 {
		q.ring = nil
	}
}
