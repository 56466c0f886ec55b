//go:build linux && (amd64 || arm64)

package ascend_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/ascend"
	"github.com/gohixl/hixl/device/devicetest"
)

// oldRelease is what a release long past lacks.
var oldRelease = []string{
	"aclrtLaunchHostFunc", "aclrtMemcpyBatchAsync", "aclrtValueWrite", "aclrtValueWait", "aclrtSetStreamFailureMode",
	"aclrtDestroyStreamForce", "aclrtCreateEventExWithFlag", "aclrtCreateStreamWithConfig", "aclrtMemGetAddressRange", "aclrtGetVersion",
}

// shapes are the ways in which a host may offer device memory.
var shapes = []struct {
	name    string
	env     map[string]string
	change  func(*ascend.Config)
	without []string
	mapping string
}{
	{name: "mapping", mapping: "halHostRegister"},
	{name: "virtual memory", env: map[string]string{"MAPPING": "absent"}, mapping: "virtual memory with host access"},
	{name: "no mapping", env: map[string]string{"MAPPING": "absent", "VMM": "absent"}},
	{name: "limited mapping", env: map[string]string{"MAPPING": "limited:65536"}, change: func(c *ascend.Config) { c.MaxMapping = 65536 }, mapping: "halHostRegister"},
	{name: "old release", without: oldRelease, mapping: "halHostRegister"},
	{name: "no driver library", change: func(c *ascend.Config) { c.Driver = ascend.None }, mapping: "virtual memory with host access"},
}

func TestConforms(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			s := newSim(t, shape.env, shape.without...)
			devicetest.RunDriver(t, func(t *testing.T) device.Driver {
				d := s.in(t).open(func(c *ascend.Config) {
					if shape.change != nil {
						shape.change(c)
					}
				})
				require.Equal(t, shape.mapping, d.Caps().Mapping, d.NoMapping())
				return d
			})
		})
	}
}
