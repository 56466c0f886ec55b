// Package cm is RDMA connection management: the messages that set up and take
// down connections over queue pair 1, and the state machine that exchanges them.
//
// # What it owns
//
// The wire: [Header] and one struct for each message ([REQ], [MRA], [REJ], [REP],
// [RTU], [DREQ], [DREP], [SIDRREQ], [SIDRREP], [LAP], [APR]), each a value that
// decodes from and appends exactly [MADLen] bytes; the IP header that RDMA CM
// puts into private data ([IPHeader]), service ids, GIDs and timeouts.
//
// The state machine: [Agent], one for each NIC. It is sans-IO: MADs, commands and
// time come in, MADs and events go out. It holds no lock, clock, goroutine or
// socket and creates no queue pair: it says with which attributes ([QPParams]) its
// caller must connect one, and when a queue pair's number may be used again.
//
// # Who calls it
//
// Package internal/nic feeds the agent with what arrives on queue pair 1 and
// sends what it queues; the root package builds Listen, Accept and Dial on its
// commands and events. One caller at a time, under one lock. After any of
//
//	Handle(now, src, mad)     a GSI packet's 256 bytes of payload arrived
//	Expire(now)               Deadline has passed
//	Connect, Accept, ...      commands
//
// the caller takes [Agent.TakeSends] and [Agent.TakeEvents]. Spurious calls are
// safe.
//
// # An active connection
//
//	Connect           the queue pair is in INIT; REQ leaves
//	ConnectResponse   bring the queue pair to RTR and RTS with Event.QP
//	Confirm           RTU leaves; the connection is established
//
// # A passive connection
//
//	ConnectRequest    create a queue pair, or Reject
//	Prepare           returns the attributes: bring it to RTR and RTS
//	Accept            REP leaves; only now may the first packet arrive
//	Established       event; or the command of that name, at the first packet
//
// # Its end
//
// Either side calls Disconnect, or sees Disconnected and moves its queue pair to
// the error state. Whatever way a connection ends, its last event is
// TimewaitExit, which gives the queue pair number back (§5.13).
//
// # What crosses, comes twice or comes late
//
// All of it is §5.9's; each line has its test.
//
//	both ask each other at once       two connections: RDMA CM has no peer-to-peer opening
//	both disconnect at once           each answers and ends; each application hears of it once
//	REQ again, nobody has decided     MRA, so that the peer waits; its ids tell that it is the same
//	REQ again, accepted               nothing: the REP has its own timer
//	REQ again, connection over        REJ 10 while TIMEWAIT lasts
//	REQ again, refused before         the application is asked again: a refusal is not remembered
//	new REQ from the queue pair of    REJ 10 to the new one; the old one ends, by DREQ if it was
//	  a connection that lives         established, by REJ 10 if not; the peer's next try is taken
//	REP again, before Confirm         MRA
//	REP again, established            the RTU was lost: again
//	REP to a connection that is over  REJ 10, so that the peer need not wait for its timer
//	  or that has another REP
//	REP from the queue pair of        REJ 10, and both end
//	  another connection that lives
//	REP that names no id of ours      nothing
//	no RTU, but a packet              Established, by the command of that name
//	REJ of a REQ that was answered    nothing: it was a late duplicate's
//	REJ, established                  the end, as by DREQ
//	DREQ before RTU or Confirm        DREP, the end, and the REP is no more repeated
//	DREQ for another QPN of ours      nothing
//	DREQ again, or of a connection    DREP, so that the peer stops asking
//	  that nobody remembers
//	DREP nobody asked for             nothing
//	SIDR_REQ again                    the answer again, for a minute; nothing before there is one
//	SIDR_REP again                    nothing
//
// # Trust
//
// What arrives is hostile until proven otherwise. A MAD changes a connection only
// if it comes from the address of the connection's peer and names an id of ours
// (32 bits that a stranger has to guess). State per peer and in all is bounded
// ([Config]); beyond it requests are refused with a reason. Intervals that a peer
// dictates are capped.
//
// Section numbers in comments are those of the project's page on the RoCEv2 wire.
package cm
