package rc

import "github.com/gohixl/hixl/roce/wr"

// Errors of Post; see package wr.
var (
	ErrSendQueueFull = wr.ErrSendQueueFull
	ErrRequest       = wr.ErrRequest
)

// RequestError says why a work request was refused.
type RequestError = wr.RequestError
