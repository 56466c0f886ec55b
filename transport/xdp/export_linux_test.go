package xdp

// Tag makes the frames of a Conn that has not sent any those of a VLAN, as the kernel's
// link would that this machine's kernel may not have.
func (c *Conn) Tag(vlan uint16) { c.link.tagged, c.link.vlan = true, vlan }

// LastTag returns the number of tags on the frame that was read last, and the VLAN.
func (c *Conn) LastTag() (tags int, vlan uint16) {
	q := c.queues[0]
	q.rxMu.Lock()
	defer q.rxMu.Unlock()
	return int(q.p.f.Tags), q.p.f.VLAN
}
