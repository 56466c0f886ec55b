package cq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gohixl/hixl/cq"
)

func ExampleQueue_Wait() {
	q, err := cq.New(128)
	if err != nil {
		fmt.Println(err)
		return
	}
	// A queue pair would do this:
	q.Complete(&cq.Completion{WRID: 7, Opcode: cq.OpWrite})
	q.Complete(&cq.Completion{WRID: 8, Opcode: cq.OpWrite, Status: cq.StatusFlushed})

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make([]cq.Completion, 16)
	n, err := q.Wait(ctx, done)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range done[:n] {
		c := &done[i]
		fmt.Println(c.WRID, c.Opcode, c.Status, errors.Is(c.Err(), cq.ErrFlushed))
	}
	// Output:
	// 7 WRITE success false
	// 8 WRITE work request flushed error true
}
