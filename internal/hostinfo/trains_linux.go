package hostinfo

import (
	"encoding/binary"
	"fmt"
	"sort"

	"golang.org/x/sys/unix"
)

const (
	probeSegment  = 8    // bytes of a segment in the probes' trains
	probeSegments = 4    // segments of the train that GRO must keep whole
	mostSegments  = 1024 // above what any kernel takes (UDP_MAX_SEGMENTS is 64 or 128)
)

// trains is what the kernel does with several packets in one call.
type trains struct {
	gso         error // why a train could not be sent, or nil
	gro         error // why it did not arrive whole, or nil
	maxSegments int   // that one train may have
}

// errCut says that a train arrived, but in pieces.
var errCut = fmt.Errorf("the train arrived cut into packets")

func trainChecks() []Check {
	t, err := probeTrains()
	if err != nil {
		t.gso, t.gro = err, err
	}
	gso := Check{Name: "udp_gso", State: OK, Value: fmt.Sprintf("trains of up to %d packets in one call", t.maxSegments)}
	if t.gso != nil {
		gso.Value = fmt.Sprintf("UDP_SEGMENT refused: %v", t.gso)
		gso = gso.needs(Missing, costGSO, "Linux 4.18 or newer, and no sandbox that hides the socket option")
	}
	gro := Check{Name: "udp_gro", State: OK, Value: "a train sent over loopback arrives whole"}
	if t.gro != nil {
		gro.Value = fmt.Sprintf("no UDP_GRO: %v", t.gro)
		gro = gro.needs(Missing, costGRO, "Linux 5.0 or newer, and no sandbox that hides the socket option")
	}
	return []Check{gso, gro}
}

// probeTrains sends trains over the loopback interface and looks at what
// arrives. The error is for sockets that cannot be opened at all.
func probeTrains() (trains, error) {
	tx, rx, to, err := udpPair()
	if err != nil {
		return trains{}, err
	}
	defer closeAll(tx, rx)
	var t trains
	t.gro = unix.SetsockoptInt(rx, unix.SOL_UDP, unix.UDP_GRO, 1)
	if t.gso = sendTrain(tx, to, probeSegments); t.gso != nil {
		if t.gro == nil {
			t.gro = t.gso // nothing to coalesce could be sent
		}
		return t, nil
	}
	if t.gro == nil {
		t.gro = receiveTrain(rx)
	}
	// Trains of the search pile up at rx, which drops what it has no room for.
	t.maxSegments = sort.Search(mostSegments, func(n int) bool { return sendTrain(tx, to, n+1) != nil })
	return t, nil
}

// sendTrain sends n segments with one call.
func sendTrain(fd int, to unix.Sockaddr, n int) error {
	oob := make([]byte, unix.CmsgSpace(2))
	h := cmsg(oob, unix.SOL_UDP, unix.UDP_SEGMENT, 2)
	binary.NativeEndian.PutUint16(h, probeSegment)
	_, err := unix.SendmsgN(fd, make([]byte, n*probeSegment), oob, to, 0)
	return err
}

// receiveTrain receives once and wants the whole train with its segment size.
func receiveTrain(fd int) error {
	buf, oob := make([]byte, 2*probeSegments*probeSegment), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := unix.Recvmsg(fd, buf, oob, 0)
	if err != nil {
		return err
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return err
	}
	for _, m := range msgs {
		if m.Header.Level == unix.SOL_UDP && m.Header.Type == unix.UDP_GRO && len(m.Data) >= 4 &&
			binary.NativeEndian.Uint32(m.Data) == probeSegment && n == probeSegments*probeSegment {
			return nil
		}
	}
	return errCut
}
