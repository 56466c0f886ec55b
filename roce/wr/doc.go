// Package wr is the language between a protocol engine and its owner: work
// requests and receives going in, packets to send ([Batch]) and instructions for
// memory ([Work]) coming out.
//
// It owns these types and nothing else: no state, no lock, no clock. The engines
// (roce/rc, roce/uc, roce/ud) and package qp use it; what an engine says about
// calling order holds.
package wr
