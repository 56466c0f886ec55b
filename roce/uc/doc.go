// Package uc is the unreliable connection: SENDs and WRITEs, with and without
// immediate, without acknowledgement. A request completes when its packets have
// been handed over; a lost packet loses its message, and only that (spec §4.15).
//
// Like the other engines it is sans-IO and touches no region, and is called by
// package qp under the queue pair's lock, in the order that package roce/rc
// describes. Time plays no part in it.
package uc
