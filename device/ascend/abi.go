package ascend

// Types and numbers of the runtime's C interface. The tests compare each size and
// offset with what a C compiler makes of it.

// location is aclrtMemLocation.
type location struct {
	id  uint32
	typ int32
}

// Memory location types.
const (
	locHost     = 0
	locDevice   = 1
	locHostNUMA = 4
)

// ptrAttributes is aclrtPtrAttributes.
type ptrAttributes struct {
	location location
	pageSize uint32
	_        [4]uint32
}

// physicalProp is aclrtPhysicalMemProp.
type physicalProp struct {
	handleType int32
	allocType  int32
	memAttr    int32
	location   location
	_          uint32
	reserve    uint64
}

// accessDesc is aclrtMemAccessDesc.
type accessDesc struct {
	flags    int32
	location location
	_        [12]uint8
}

// batchAttr is aclrtMemcpyBatchAttr.
type batchAttr struct {
	dst, src location
	_        [16]uint8
}

// Numbers of the runtime.
const (
	copyH2D = 1 // aclrtMemcpyKind
	copyD2H = 2
	copyD2D = 3

	hugeFirst = 0 // aclrtMemMallocPolicy

	memAttrHBMHuge  = 4 // aclrtMemAttr
	accessReadWrite = 3

	eventSync     = 1 // flag of aclrtCreateEventExWithFlag
	eventComplete = 1 // aclrtEventRecordedStatus, of aclrtQueryEventStatus only

	stopOnFailure = 1 // aclrtSetStreamFailureMode

	waitGEQ = 0 // aclrtValueWait
	waitEQ  = 1
	waitAND = 2
	waitNOR = 3

	devSVMMapHost = 2 // drvRegisterTpye

	errRepeatInit = 100002
	vmmGranule    = 2 << 20
	hostPage      = 4096
	blockAlign    = 64
	firstPriority = 0
)
