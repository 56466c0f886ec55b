//go:build linux && (amd64 || arm64)

package ascend_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device/ascend"
)

func findings(list []ascend.Finding) map[string]ascend.Finding {
	m := make(map[string]ascend.Finding)
	for _, f := range list {
		m[f.Name] = f
	}
	return m
}

func TestExamine(t *testing.T) {
	s := newSim(t, nil)
	all := ascend.Examine(s.config())
	require.Len(t, all, 7)
	for _, f := range all {
		require.True(t, f.OK, "%+v", f)
		require.Empty(t, f.Cost+f.Remedy)
	}
	require.Contains(t, findings(all)["ascend_runtime"].Value, "AscendSim, version 1.17.0")
	require.Contains(t, findings(all)["ascend_mapping"].Value, "halHostRegister")
	s.bind()
	s.nothingLeft()
}

func TestExamineSaysWhatIsMissing(t *testing.T) {
	s := newSim(t, map[string]string{"MAPPING": "absent", "VMM": "absent"}, oldRelease...)
	m := findings(ascend.Examine(s.config()))
	for _, name := range []string{"ascend_mapping", "ascend_callbacks", "ascend_values", "ascend_batch"} {
		require.True(t, m[name].Limited, name)
		require.NotEmpty(t, m[name].Cost, name)
		require.NotEmpty(t, m[name].Remedy, name)
	}
	require.Contains(t, m["ascend_mapping"].Value, "DRV_ERROR_NOT_SUPPORT (65534)")
	require.True(t, m["ascend_copies"].OK)
}

func TestExamineWithoutRuntime(t *testing.T) {
	all := ascend.Examine(ascend.Config{Library: "/nowhere/libascendcl.so"})
	require.Len(t, all, 1)
	require.False(t, all[0].OK)
	require.Contains(t, all[0].Value, "/nowhere/libascendcl.so")
	require.Contains(t, all[0].Remedy, "set_env.sh")
}

func TestExamineBrokenCopies(t *testing.T) {
	s := newSim(t, map[string]string{"FAIL": "aclrtMemcpyAsync:507899:0:0"})
	m := findings(ascend.Examine(s.config()))
	require.False(t, m["ascend_copies"].OK)
	require.Contains(t, m["ascend_copies"].Value, "507899")
}
