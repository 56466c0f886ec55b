package cm

// recentIDs is how many ids stay out of use after their connection is gone.
const recentIDs = 1024

// idSource draws communication ids: random, so that strangers cannot name our
// connections, and not used again soon (§5.9, C2).
type idSource struct {
	rand   func() uint64
	recent map[CommID]struct{}
	ring   [recentIDs]CommID // in order of retirement; 0 is a free place
	next   int
}

// draw returns an id that is neither 0 nor recent nor in use.
func (s *idSource) draw(used func(CommID) bool) CommID {
	id := CommID(s.rand())
	for ; ; id++ {
		if _, recent := s.recent[id]; id != 0 && !recent && !used(id) {
			return id
		}
	}
}

// retire keeps an id out of use for a while.
func (s *idSource) retire(id CommID) {
	if s.recent == nil {
		s.recent = make(map[CommID]struct{})
	}
	delete(s.recent, s.ring[s.next])
	s.ring[s.next] = id
	s.recent[id] = struct{}{}
	s.next = (s.next + 1) % recentIDs
}
