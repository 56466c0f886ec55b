//go:build linux && (amd64 || arm64)

package ascend

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Each structure is laid out as a C compiler lays it out.
func TestABI(t *testing.T) {
	prog := filepath.Join(t.TempDir(), "abi")
	out, err := exec.Command("gcc", "-Wall", "-Wextra", "-Werror", "-I", "ascendsim/src", "-o", prog, "testdata/abi.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(prog).Output()
	require.NoError(t, err)

	var (
		loc   location
		attrs ptrAttributes
		prop  physicalProp
		desc  accessDesc
		batch batchAttr
	)
	var b strings.Builder
	size := func(name string, n uintptr) { fmt.Fprintf(&b, "%s %d\n", name, n) }
	field := func(name string, off, n uintptr) { fmt.Fprintf(&b, "%s %d %d\n", name, off, n) }
	size("aclrtMemLocation", unsafe.Sizeof(loc))
	field("aclrtMemLocation.id", unsafe.Offsetof(loc.id), unsafe.Sizeof(loc.id))
	field("aclrtMemLocation.type", unsafe.Offsetof(loc.typ), unsafe.Sizeof(loc.typ))
	size("aclrtPtrAttributes", unsafe.Sizeof(attrs))
	field("aclrtPtrAttributes.location", unsafe.Offsetof(attrs.location), unsafe.Sizeof(attrs.location))
	field("aclrtPtrAttributes.pageSize", unsafe.Offsetof(attrs.pageSize), unsafe.Sizeof(attrs.pageSize))
	size("aclrtPhysicalMemProp", unsafe.Sizeof(prop))
	field("aclrtPhysicalMemProp.handleType", unsafe.Offsetof(prop.handleType), unsafe.Sizeof(prop.handleType))
	field("aclrtPhysicalMemProp.allocationType", unsafe.Offsetof(prop.allocType), unsafe.Sizeof(prop.allocType))
	field("aclrtPhysicalMemProp.memAttr", unsafe.Offsetof(prop.memAttr), unsafe.Sizeof(prop.memAttr))
	field("aclrtPhysicalMemProp.location", unsafe.Offsetof(prop.location), unsafe.Sizeof(prop.location))
	field("aclrtPhysicalMemProp.reserve", unsafe.Offsetof(prop.reserve), unsafe.Sizeof(prop.reserve))
	size("aclrtMemAccessDesc", unsafe.Sizeof(desc))
	field("aclrtMemAccessDesc.flags", unsafe.Offsetof(desc.flags), unsafe.Sizeof(desc.flags))
	field("aclrtMemAccessDesc.location", unsafe.Offsetof(desc.location), unsafe.Sizeof(desc.location))
	size("aclrtMemcpyBatchAttr", unsafe.Sizeof(batch))
	field("aclrtMemcpyBatchAttr.dstLoc", unsafe.Offsetof(batch.dst), unsafe.Sizeof(batch.dst))
	field("aclrtMemcpyBatchAttr.srcLoc", unsafe.Offsetof(batch.src), unsafe.Sizeof(batch.src))
	require.Equal(t, string(out), b.String())
}
