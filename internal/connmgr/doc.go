// Package connmgr runs connection management (package roce/cm) on a NIC: it owns
// QP1 with its receives, the lock around the protocol's agent, and the hold on the
// numbers of queue pairs until TIMEWAIT ends.
//
// # Who calls it
//
// The root package, from any goroutine: commands. The NIC, as its [nic.Service]:
// Run. Queue pairs, under their locks: [Manager.Later].
//
// # How it runs
//
// Commands change the agent and wake the NIC; everything else happens in Run, on
// the NIC's service goroutine or in the Poll of a stepped NIC: MADs that have
// arrived are handled, timers expire, receives are posted again, what the agent
// queued is sent, and events go to their [Handler]. There is no goroutine for a
// connection, and handlers never run at the same time. A manager that nobody needs
// answers for its NIC that nobody listens, and has 64 receives; all 512 are made
// when somebody listens or the first MAD comes, and no packet makes more.
//
// # Locks
//
// The run lock, then whatever locks handlers take, then the manager's, then the
// inbox's, which is a leaf: completions are put there under QP1's lock.
package connmgr
