package connmgr

import (
	"github.com/gohixl/hixl/roce/cm"
)

// do runs a command of the agent and has its consequences seen to.
func (m *Manager) do(f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed != nil {
		return m.closed
	}
	m.nic.Wake()
	return f()
}

// Listen gives requests for a service to h, see cm.Agent.Listen. The handler of a
// request must Bind another, or answer it.
func (m *Manager) Listen(s cm.ServiceID, h Handler) error {
	return m.do(func() error {
		if err := m.agent.Listen(s); err != nil {
			return err
		}
		m.serving[s] = h
		return nil
	})
}

// Unlisten ends Listen.
func (m *Manager) Unlisten(s cm.ServiceID) {
	_ = m.do(func() error {
		m.agent.Unlisten(s)
		delete(m.serving, s)
		return nil
	})
}

// Bind makes h the handler of a connection or SIDR request that a peer asked for.
// It reports false when that is over already.
func (m *Manager) Bind(id cm.CommID, h Handler) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.agent.State(id); !ok || m.closed != nil {
		return false
	}
	m.handler[id] = h
	return true
}

// Connect asks for a connection, see cm.Agent.Connect, whose events go to h. The
// number of its queue pair is held until TimewaitExit.
func (m *Manager) Connect(p cm.ConnectParams, h Handler) (id cm.CommID, err error) {
	err = m.do(func() error {
		if id, err = m.agent.Connect(m.nic.Now(), p); err != nil {
			return err
		}
		m.nic.HoldQPN(p.QPN)
		m.handler[id] = h
		return nil
	})
	return id, err
}

// Prepare is cm.Agent.Prepare, called once for a connection. The number of its
// queue pair is held until TimewaitExit.
func (m *Manager) Prepare(id cm.CommID, p cm.AcceptParams) (q cm.QPParams, err error) {
	err = m.do(func() error {
		if q, err = m.agent.Prepare(id, p); err == nil {
			m.nic.HoldQPN(p.QPN)
		}
		return err
	})
	return q, err
}

// Accept is cm.Agent.Accept.
func (m *Manager) Accept(id cm.CommID) error {
	return m.do(func() error { return m.agent.Accept(m.nic.Now(), id) })
}

// Established is cm.Agent.Established.
func (m *Manager) Established(id cm.CommID) error {
	return m.do(func() error { return m.agent.Established(id) })
}

// Confirm is cm.Agent.Confirm.
func (m *Manager) Confirm(id cm.CommID) error {
	return m.do(func() error { return m.agent.Confirm(id, nil) })
}

// Reject is cm.Agent.Reject.
func (m *Manager) Reject(id cm.CommID, p cm.RejectParams) error {
	return m.do(func() error { return m.agent.Reject(m.nic.Now(), id, p) })
}

// Disconnect is cm.Agent.Disconnect; a connection that is not established yet is
// destroyed.
func (m *Manager) Disconnect(id cm.CommID) {
	_ = m.do(func() error {
		if s, _ := m.agent.State(id); s == cm.StateEstablished {
			return m.agent.Disconnect(m.nic.Now(), id, nil)
		} else if s != cm.StateDREQSent {
			m.agent.Destroy(m.nic.Now(), id)
		}
		return nil
	})
}

// Resolve is cm.Agent.Resolve; the answer goes to h.
func (m *Manager) Resolve(p cm.ResolveParams, h Handler) (id cm.CommID, err error) {
	err = m.do(func() error {
		if id, err = m.agent.Resolve(m.nic.Now(), p); err == nil {
			m.handler[id] = h
		}
		return err
	})
	return id, err
}

// Forget ends a question without an answer.
func (m *Manager) Forget(id cm.CommID) {
	_ = m.do(func() error {
		delete(m.handler, id)
		m.agent.Destroy(m.nic.Now(), id)
		return nil
	})
}

// AnswerSIDR is cm.Agent.AnswerSIDR.
func (m *Manager) AnswerSIDR(id cm.CommID, a cm.SIDRAnswer) error {
	return m.do(func() error { return m.agent.AnswerSIDR(m.nic.Now(), id, a) })
}
