package ascend

import (
	"fmt"

	"github.com/gohixl/hixl/device"
)

// code is what is known of an error number.
type code struct {
	name   string
	class  error // nil is device.ErrFailed
	advice string
}

// aclCodes are the runtime's errors that can come of what is called here.
var aclCodes = map[int]code{
	100000: {"ACL_ERROR_INVALID_PARAM", device.ErrArgument, ""},
	100001: {"ACL_ERROR_UNINITIALIZE", device.ErrArgument, ""},
	100002: {"ACL_ERROR_REPEAT_INITIALIZE", device.ErrArgument, ""},
	107000: {"ACL_ERROR_RT_PARAM_INVALID", device.ErrArgument, ""},
	107001: {"ACL_ERROR_RT_INVALID_DEVICEID", device.ErrArgument, "npu-smi info lists the devices; ASCEND_RT_VISIBLE_DEVICES renumbers them"},
	107002: {"ACL_ERROR_RT_CONTEXT_NULL", device.ErrArgument, ""},
	107003: {"ACL_ERROR_RT_STREAM_CONTEXT", device.ErrArgument, ""},
	107008: {"ACL_ERROR_RT_ADDR_UNALIGNED", device.ErrAlign, ""},
	107016: {"ACL_ERROR_RT_INVALID_MEMORY_TYPE", device.ErrArgument, ""},
	107017: {"ACL_ERROR_RT_INVALID_HANDLE", device.ErrArgument, ""},
	107018: {"ACL_ERROR_RT_INVALID_MALLOC_TYPE", device.ErrArgument, ""},
	107019: {"ACL_ERROR_RT_WAIT_TIMEOUT", device.ErrTimeout, ""},
	107020: {"ACL_ERROR_RT_TASK_TIMEOUT", device.ErrTimeout, ""},
	107022: {"ACL_ERROR_RT_DEVICE_TASK_ABORT", device.ErrLost, "reset the device and open it again"},
	107023: {"ACL_ERROR_RT_STREAM_ABORT", nil, ""},
	200000: {"ACL_ERROR_BAD_ALLOC", device.ErrNoMemory, ""},
	207000: {"ACL_ERROR_RT_FEATURE_NOT_SUPPORT", device.ErrUnsupported, ""},
	207001: {"ACL_ERROR_RT_MEMORY_ALLOCATION", device.ErrNoMemory, "npu-smi info shows who uses the memory"},
	207002: {"ACL_ERROR_RT_MEMORY_FREE", device.ErrArgument, ""},
	207004: {"ACL_ERROR_RT_NO_DEVICE", device.ErrUnsupported, "the driver sees no device: check npu-smi info and /dev/davinci*"},
	207005: {"ACL_ERROR_RT_RESOURCE_ALLOC_FAIL", device.ErrResource, ""},
	207006: {"ACL_ERROR_RT_NO_PERMISSION", nil, "join the group that owns /dev/davinci*, HwHiAiUser as a rule"},
	207007: {"ACL_ERROR_RT_NO_EVENT_RESOURCE", device.ErrResource, ""},
	207008: {"ACL_ERROR_RT_NO_STREAM_RESOURCE", device.ErrResource, "a device has 1984 streams for all its users"},
	207018: {"ACL_ERROR_RT_DEVICE_OOM", device.ErrNoMemory, "npu-smi info shows who uses the memory"},
	207020: {"ACL_ERROR_RT_DRV_TIMEOUT", device.ErrTimeout, ""},
	500000: {"ACL_ERROR_INTERNAL_ERROR", nil, ""},
	507000: {"ACL_ERROR_RT_INTERNAL_ERROR", nil, ""},
	507001: {"ACL_ERROR_RT_TS_ERROR", nil, ""},
	507010: {"ACL_ERROR_RT_LOST_HEARTBEAT", device.ErrLost, "the device does not answer: reset it with npu-smi"},
	507013: {"ACL_ERROR_RT_SYS_DMA", nil, ""},
	507046: {"ACL_ERROR_RT_STREAM_SYNC_TIMEOUT", device.ErrTimeout, ""},
	507047: {"ACL_ERROR_RT_EVENT_SYNC_TIMEOUT", device.ErrTimeout, ""},
	507053: {"ACL_ERROR_RT_DEVICE_MEM_ERROR", nil, ""},
	507054: {"ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR", nil, "the memory is faulty: reset the device"},
	507056: {"ACL_ERROR_RT_LINK_ERROR", nil, ""},
	507057: {"ACL_ERROR_RT_SUSPECT_REMOTE_ERROR", nil, ""},
	507899: {"ACL_ERROR_RT_DRV_INTERNAL_ERROR", nil, "the driver's own log is in /var/log/npu"},
	507901: {"ACL_ERROR_RT_SOCKET_CLOSE", device.ErrLost, "the host lost its link to the device"},
}

// halCodes are the driver's.
var halCodes = map[int]code{
	1:      {"DRV_ERROR_NO_DEVICE", device.ErrUnsupported, ""},
	2:      {"DRV_ERROR_INVALID_DEVICE", device.ErrArgument, ""},
	3:      {"DRV_ERROR_INVALID_VALUE", device.ErrArgument, ""},
	4:      {"DRV_ERROR_INVALID_HANDLE", device.ErrArgument, ""},
	6:      {"DRV_ERROR_OUT_OF_MEMORY", device.ErrNoMemory, ""},
	8:      {"DRV_ERROR_PARA_ERROR", device.ErrArgument, ""},
	11:     {"DRV_ERROR_NOT_EXIST", device.ErrArgument, ""},
	12:     {"DRV_ERROR_REPEATED_INIT", device.ErrArgument, ""},
	13:     {"DRV_ERROR_BUSY", device.ErrResource, ""},
	16:     {"DRV_ERROR_WAIT_TIMEOUT", device.ErrTimeout, ""},
	17:     {"DRV_ERROR_IOCRL_FAIL", nil, ""},
	0xfffe: {"DRV_ERROR_NOT_SUPPORT", device.ErrUnsupported, "device memory cannot be mapped here; copies do without"},
}

// describe makes an error of a code that call returned.
func describe(codes map[int]code, dev, call, what string, n int, message string) *device.DriverError {
	c, ok := codes[n]
	if !ok {
		c.name = "unknown error"
	}
	return &device.DriverError{
		Device: dev, Call: call, What: what, Code: n, Name: c.name, Message: message, Class: c.class, Advice: c.advice,
	}
}

func nameOf(dev int) string { return fmt.Sprintf("ascend:%d", dev) }
