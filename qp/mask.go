package qp

import (
	"fmt"
	"strings"
)

// AttrMask says which fields of an [Attr] count, with the verbs bits (§3.18).
type AttrMask uint32

// The attributes.
const (
	MaskState        AttrMask = 0x1
	MaskCurState     AttrMask = 0x2
	MaskSQDNotify    AttrMask = 0x4
	MaskAccess       AttrMask = 0x8
	MaskPKeyIndex    AttrMask = 0x10
	MaskPort         AttrMask = 0x20
	MaskQKey         AttrMask = 0x40
	MaskAV           AttrMask = 0x80
	MaskPathMTU      AttrMask = 0x100
	MaskTimeout      AttrMask = 0x200
	MaskRetryCount   AttrMask = 0x400
	MaskRNRRetry     AttrMask = 0x800
	MaskRecvPSN      AttrMask = 0x1000
	MaskMaxRead      AttrMask = 0x2000
	MaskAltPath      AttrMask = 0x4000
	MaskMinRNRTimer  AttrMask = 0x8000
	MaskSendPSN      AttrMask = 0x10000
	MaskMaxDestRead  AttrMask = 0x20000
	MaskPathMigState AttrMask = 0x40000
	MaskCap          AttrMask = 0x80000
	MaskDestQPN      AttrMask = 0x100000
)

var maskNames = [...]string{
	"STATE", "CUR_STATE", "EN_SQD_ASYNC_NOTIFY", "ACCESS_FLAGS", "PKEY_INDEX", "PORT", "QKEY", "AV",
	"PATH_MTU", "TIMEOUT", "RETRY_CNT", "RNR_RETRY", "RQ_PSN", "MAX_QP_RD_ATOMIC", "ALT_PATH", "MIN_RNR_TIMER",
	"SQ_PSN", "MAX_DEST_RD_ATOMIC", "PATH_MIG_STATE", "CAP", "DEST_QPN",
}

// String lists the attributes by their verbs names, "none" for the empty mask.
func (m AttrMask) String() string {
	if m == 0 {
		return "none"
	}
	var names []string
	for i, name := range maskNames {
		if bit := AttrMask(1) << i; m&bit != 0 {
			names = append(names, name)
			m &^= bit
		}
	}
	if m != 0 {
		names = append(names, fmt.Sprintf("%#x", uint32(m)))
	}
	return strings.Join(names, "|")
}
