package hostinfo

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// cmsg writes the header of a control message with n bytes of data at the
// start of b, which has room for it, and returns where the data goes.
func cmsg(b []byte, level, kind int32, n int) []byte {
	h := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(b)))
	h.Level, h.Type = level, kind
	h.SetLen(unix.CmsgLen(n))
	return b[unix.CmsgLen(0):][:n]
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}
