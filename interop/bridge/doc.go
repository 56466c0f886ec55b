// Package bridge is a learning Ethernet switch in user space that damages RoCE
// packets on purpose: it loses, repeats, reorders and corrupts them by seeded
// chance, or loses chosen ones by rule, and records what its ports sent. Frames
// of other protocols pass untouched.
//
// The lab joins its guests and the host by one; tests may call it from any
// goroutine.
package bridge
