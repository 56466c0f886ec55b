package nic

import "time"

// Naps has the NIC call f where it would nap. It is not started yet.
func (n *NIC) Naps(f func(time.Duration)) { n.nap = f }

// GatherHolds is the least receive buffer with which a NIC naps.
const GatherHolds = gatherHolds
