// Package bench measures one-sided operations between two NICs, verifies every
// byte they moved and compares them, round by round in the same run, with Go
// TCP, a ring in shared memory, a plain copy and programs of other stacks.
//
// It owns the scenarios (which operation, size, depth), the pattern that tells
// fresh bytes from stale ones, the peer process and its control connection, the
// baselines and the reports. [Run] is the requester's side and may be called
// from any goroutine, one call at a time for an address; [ServePeer] and
// [Listen] are the responder's side. cmd/hixl-bench is a thin main around them.
//
// # What is measured
//
// A cell is one operation with one size, depth and number of queue pairs. It is
// measured in rounds, each of which runs the baselines of that size and then
// the cells, so that a ratio compares neighbours in time. A round of a cell is:
// fill the source and clear the destination (not timed), a short warm-up, the
// bandwidth part with depth messages outstanding, the latency part with one
// message at a time, then the verification (not timed).
//
// Latency is the whole operation as its caller sees it: from before the post to
// the completion in hand. One way would be about half of it.
//
// A baseline is a line of baselineKinds and a mover; foreign programs run as
// processes on loopback of a network namespace of their own and are gone when a
// round is. A [Goal] is a figure of ours that the datapath is held to, measured
// against another in turns; each stands in a floors_*.go and runs alone by its name.
// With [Config].Passes above one it is judged by its worst pass.
//
// CPU seconds are user and system time of both processes during the bandwidth
// part. GB is 1e9 bytes of payload.
//
// # Reports
//
// A [Report] is written as a table with a line a cell (WriteTable), as medians by size
// with the ratios first (WriteComparison, for a document WriteMarkdown), as a page with
// two charts (WritePlot), as CSV and as JSON. The JSON is the struct itself: its field
// tags are the names, sizes and counters are plain numbers, *_us is microseconds, *_ns
// nanoseconds, and a [Ratio] is ours by theirs, median and extremes of the rounds. Each
// [Round] stands in it with what was spent and met on both sides. A [GoalsReport] is the
// same of goals. [ReplaceFile] and [UpdateSection] leave a file whole at any time.
package bench
