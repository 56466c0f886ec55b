//go:build amd64 || arm64

package ascend

import (
	"reflect"
	"unsafe"

	"github.com/ebitengine/purego"
)

// acl are the runtime's functions. Each may be nil: a release may lack it.
type acl struct {
	Init           func(config *byte) int32                     `c:"aclInit"`
	Finalize       func() int32                                 `c:"aclFinalize"`
	SetDevice      func(dev int32) int32                        `c:"aclrtSetDevice"`
	ResetDevice    func(dev int32) int32                        `c:"aclrtResetDevice"`
	DeviceCount    func(n *uint32) int32                        `c:"aclrtGetDeviceCount"`
	CreateContext  func(ctx *uintptr, dev int32) int32          `c:"aclrtCreateContext"`
	DestroyContext func(ctx uintptr) int32                      `c:"aclrtDestroyContext"`
	SocName        func() *byte                                 `c:"aclrtGetSocName"`
	Version        func(major, minor, patch *int32) int32       `c:"aclrtGetVersion"`
	LogicDevice    func(user *int32, logic *int32) int32        `c:"aclrtGetLogicDevIdByUserDevId"`
	RecentErrMsg   func() *byte                                 `c:"aclGetRecentErrMsg"`
	Malloc         func(p *uintptr, n uintptr, pol int32) int32 `c:"aclrtMalloc"`
	Free           func(p uintptr) int32                        `c:"aclrtFree"`
	MallocHost     func(p *uintptr, n uintptr) int32            `c:"aclrtMallocHost"`
	FreeHost       func(p uintptr) int32                        `c:"aclrtFreeHost"`
	PointerAttrs   func(p uintptr, a *ptrAttributes) int32      `c:"aclrtPointerGetAttributes"`
	AddressRange   func(p uintptr, base, size *uintptr) int32   `c:"aclrtMemGetAddressRange"`
	MemInfo        func(attr int32, free, total *uintptr) int32 `c:"aclrtGetMemInfo"`

	Memcpy      func(dst, max, src, n uintptr, kind int32) int32                                                                                                               `c:"aclrtMemcpy"`
	MemcpyAsync func(dst, max, src, n uintptr, kind int32, stream uintptr) int32                                                                                               `c:"aclrtMemcpyAsync"`
	BatchAsync  func(dsts, maxs, srcs, sizes unsafe.Pointer, n uintptr, attrs *batchAttr, indexes unsafe.Pointer, nattrs uintptr, failed unsafe.Pointer, stream uintptr) int32 `c:"aclrtMemcpyBatchAsync"`

	Reserve        func(p *uintptr, size, align, expect uintptr, flags uint64) int32      `c:"aclrtReserveMemAddress"`
	Release        func(p uintptr) int32                                                  `c:"aclrtReleaseMemAddress"`
	MallocPhysical func(h *uintptr, size uintptr, prop *physicalProp, flags uint64) int32 `c:"aclrtMallocPhysical"`
	FreePhysical   func(h uintptr) int32                                                  `c:"aclrtFreePhysical"`
	MapMem         func(p, size, off, h uintptr, flags uint64) int32                      `c:"aclrtMapMem"`
	UnmapMem       func(p uintptr) int32                                                  `c:"aclrtUnmapMem"`
	SetAccess      func(p, size uintptr, desc *accessDesc, n uintptr) int32               `c:"aclrtMemSetAccess"`

	CreateStream       func(s *uintptr) int32                                      `c:"aclrtCreateStream"`
	CreateStreamConfig func(s *uintptr, priority, flag uint32) int32               `c:"aclrtCreateStreamWithConfig"`
	PriorityRange      func(least, greatest *int32) int32                          `c:"aclrtDeviceGetStreamPriorityRange"`
	DestroyStream      func(s uintptr) int32                                       `c:"aclrtDestroyStream"`
	DestroyForce       func(s uintptr) int32                                       `c:"aclrtDestroyStreamForce"`
	StreamAbort        func(s uintptr) int32                                       `c:"aclrtStreamAbort"`
	FailureMode        func(s uintptr, mode uint64) int32                          `c:"aclrtSetStreamFailureMode"`
	StreamQuery        func(s uintptr, status *int32) int32                        `c:"aclrtStreamQuery"`
	StreamWaitEvent    func(s, e uintptr) int32                                    `c:"aclrtStreamWaitEvent"`
	CreateEvent        func(e *uintptr) int32                                      `c:"aclrtCreateEvent"`
	CreateEventFlag    func(e *uintptr, flag uint32) int32                         `c:"aclrtCreateEventWithFlag"`
	CreateEventEx      func(e *uintptr, flag uint32) int32                         `c:"aclrtCreateEventExWithFlag"`
	DestroyEvent       func(e uintptr) int32                                       `c:"aclrtDestroyEvent"`
	RecordEvent        func(e, s uintptr) int32                                    `c:"aclrtRecordEvent"`
	EventStatus        func(e uintptr, status *int32) int32                        `c:"aclrtQueryEventStatus"`
	LaunchHostFunc     func(s, fn, arg uintptr) int32                              `c:"aclrtLaunchHostFunc"`
	ValueWrite         func(p uintptr, value uint64, flag uint32, s uintptr) int32 `c:"aclrtValueWrite"`
	ValueWait          func(p uintptr, value uint64, flag uint32, s uintptr) int32 `c:"aclrtValueWait"`
}

// hal are the driver's functions, likewise.
type hal struct {
	HostRegister   func(src uintptr, size uint64, flag, dev uint32, dst *uintptr) int32 `c:"halHostRegister"`
	HostUnregister func(src uintptr, dev uint32) int32                                  `c:"halHostUnregister"`
	UnregisterEx   func(src uintptr, dev, flag uint32) int32                            `c:"halHostUnregisterEx"`
}

// bind sets each field of table, a pointer to a struct of functions, to the
// library's symbol of its tag, and notes what there is.
func bind(table any, handle uintptr, have map[string]bool) {
	v := reflect.ValueOf(table).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("c")
		sym, err := purego.Dlsym(handle, name)
		if have[name] = err == nil; have[name] {
			purego.RegisterFunc(v.Field(i).Addr().Interface(), sym)
		}
	}
}

// text copies a C string, which may be nil. It stops at a size that no message
// reaches.
func text(p *byte) string {
	if p == nil {
		return ""
	}
	const limit = 1 << 14
	n := 0
	for n < limit && *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// view makes a slice of memory outside Go.
func view(p uintptr, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}
