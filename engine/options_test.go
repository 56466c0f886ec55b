package engine_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gohixl/hixl/engine"
)

func netipAddr(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestOptionDefaults(t *testing.T) {
	o, err := engine.ParseOptions(nil, nil)
	require.NoError(t, err)
	require.Equal(t, &engine.Options{
		TrafficClass: 132, ServiceLevel: 4, Buffers: 4, BufferSize: 8 << 20,
		Resources: engine.ResourceConfig{
			ConnectThreads: 2, ConnectQueue: 128, MaxActiveChannels: 128, QoS: -1,
			Fabric: engine.FabricConfig{MaxCapacity: 32, StartAddress: 40, Streams: 4, Unfold: true},
		},
	}, o)
}

func TestOptionsInFull(t *testing.T) {
	file := filepath.Join(t.TempDir(), "res.json")
	res := `{"version": "1.3", "net_instance_id": "n", "endpoint_list": [
		{"protocol": "hccs", "comm_id": "5", "placement": "device"},
		{"protocol": "roce", "comm_id": "10.0.0.1", "placement": "host", "plane": "p", "dst_eid": "d", "server_id": "s"}]}`
	require.NoError(t, os.WriteFile(file, []byte(res), 0o600))
	o, err := engine.ParseOptions(map[string]string{
		"EnableUseFabricMem": "0", "RdmaTrafficClass": "64", "RdmaServiceLevel": "7", "BufferPool": "0:0", "AutoConnect": "1",
		"GlobalResourceConfig": fmt.Sprintf(`{
			"fabric_memory.max_capacity": 1024, "fabric_memory": {"start_address": "1", "task_stream_num": 8, "enable_aicpu_unfold": "false"},
			"connect_pool": {"thread_num": 64, "task_queue_capacity": 65535},
			"channel_pool.max_channel": 512, "channel_pool.high_waterline": 0.9, "channel_pool.low_waterline": "0.5",
			"comm_resource_config": {"protocol_desc": ["hccs:device", "roce:host"], "listen_port": 16666, "qos": 3, "max_active_channels": 1, "local_comm_res_path": %q}
		}`, file),
	}, nil)
	require.NoError(t, err)
	require.Equal(t, &engine.Options{
		TrafficClass: 64, ServiceLevel: 7, AutoConnect: true,
		Resources: engine.ResourceConfig{
			ConnectThreads: 64, ConnectQueue: 65535, MaxChannel: 512, HighWaterline: 0.9, LowWaterline: 0.5, MaxActiveChannels: 1,
			Protocols: []string{"hccs:device", "roce:host"}, LocalCommResPath: file, ListenPort: 16666, QoS: 3,
			Fabric: engine.FabricConfig{MaxCapacity: 1024, StartAddress: 1, Streams: 8},
		},
		CommRes: &engine.CommRes{NetInstanceID: "n", Endpoints: []engine.Endpoint{
			{Protocol: "hccs", CommID: "5", Placement: "device"},
			{Protocol: "roce", CommID: "10.0.0.1", Placement: "host", Plane: "p", DstEID: "d", ServerID: "s"},
		}},
	}, o)
	e, err := engine.Open(engine.Config{LocalEngine: "10.0.0.1", Getenv: noEnv, Options: map[string]string{"LocalCommRes": strings.ReplaceAll(res, "10.0.0.1", "10.0.0.2")}})
	require.ErrorIs(t, err, engine.ErrUnsupported, "an endpoint of another address")
	require.Nil(t, e)
}

// An option takes precedence over the environment.
func TestEnvironment(t *testing.T) {
	env := map[string]string{
		engine.EnvTrafficClass: "8", engine.EnvServiceLevel: "1", engine.EnvTimeout: "20", engine.EnvRetryCount: "3", engine.EnvIntraRoCE: "1", engine.EnvIntraPCIe: "0",
	}
	get := func(name string) string { return env[name] }
	o, err := engine.ParseOptions(map[string]string{engine.OptionRdmaTrafficClass: "12"}, get)
	require.NoError(t, err)
	require.EqualValues(t, 12, o.TrafficClass)
	require.EqualValues(t, 1, o.ServiceLevel)
	require.Equal(t, 20, o.Timeout)
	require.Equal(t, 3, o.Retries)
	for name := range env {
		env[name] += "x"
		_, err := engine.ParseOptions(nil, get)
		require.ErrorIs(t, err, engine.ErrParamInvalid, name)
		require.ErrorContains(t, err, name)
		delete(env, name)
	}
}

func TestBadOptions(t *testing.T) {
	long := strings.Repeat("x", engine.MaxOption+1)
	deep := strings.Repeat("[", 100000)
	for _, c := range []struct {
		status     engine.Status
		key, value string
	}{
		{103900, "Nothing", "1"},
		{103900, long, "1"},
		{103900, "AutoConnect", "yes"},
		{103900, "AutoConnect", ""},
		{103900, "AutoConnect", "2"},
		{103905, "EnableUseFabricMem", "1"},
		{103900, "EnableUseFabricMem", "true"},
		{103900, "RdmaTrafficClass", "130"},
		{103900, "RdmaTrafficClass", "256"},
		{103900, "RdmaTrafficClass", "-4"},
		{103900, "RdmaTrafficClass", " 4"},
		{103900, "RdmaServiceLevel", "8"},
		{103900, "RdmaServiceLevel", "99999999999999999999"},
		{103900, "BufferPool", "4"},
		{103900, "BufferPool", "4:0"},
		{103900, "BufferPool", "0:8"},
		{103900, "BufferPool", "4096:16384"},
		{103900, "BufferPool", "4:8:1"},
		{103900, "BufferPool", ":"},
		{103900, "BufferPool", "5000:1"},
		{103900, "GlobalResourceConfig", ""},
		{103900, "GlobalResourceConfig", "[]"},
		{103900, "GlobalResourceConfig", "null"},
		{103900, "GlobalResourceConfig", "{"},
		{103900, "GlobalResourceConfig", "{} {}"},
		{103900, "GlobalResourceConfig", long},
		{103900, "GlobalResourceConfig", deep},
		{103900, "GlobalResourceConfig", `{"a": 1}`},
		{103900, "GlobalResourceConfig", `{"connect_pool.thread_num": 1, "connect_pool.thread_num": 2}`},
		{103900, "GlobalResourceConfig", `{"connect_pool.thread_num": 1, "connect_pool": {"thread_num": 2}}`},
		{103900, "GlobalResourceConfig", `{"connect_pool.thread_num": 0}`},
		{103900, "GlobalResourceConfig", `{"connect_pool.thread_num": 65}`},
		{103900, "GlobalResourceConfig", `{"connect_pool.thread_num": 1.5}`},
		{103900, "GlobalResourceConfig", `{"connect_pool.thread_num": 1e1}`},
		{103900, "GlobalResourceConfig", `{"connect_pool.thread_num": null}`},
		{103900, "GlobalResourceConfig", `{"connect_pool.task_queue_capacity": 65536}`},
		{103900, "GlobalResourceConfig", `{"channel_pool.max_channel": 513}`},
		{103900, "GlobalResourceConfig", `{"channel_pool.high_waterline": 1.1}`},
		{103900, "GlobalResourceConfig", `{"channel_pool.high_waterline": "NaN"}`},
		{103900, "GlobalResourceConfig", `{"channel_pool.low_waterline": 0.5}`},
		{103900, "GlobalResourceConfig", `{"channel_pool.low_waterline": 0.5, "channel_pool.high_waterline": 0.4}`},
		{103900, "GlobalResourceConfig", `{"fabric_memory.max_capacity": 1025}`},
		{103900, "GlobalResourceConfig", `{"fabric_memory.enable_aicpu_unfold": 7}`},
		{103900, "GlobalResourceConfig", `{"comm_resource_config.protocol_desc": "roce:host"}`},
		{103900, "GlobalResourceConfig", `{"comm_resource_config.protocol_desc": [1]}`},
		{103900, "GlobalResourceConfig", `{"comm_resource_config.protocol_desc": ["tcp:host"]}`},
		{103905, "GlobalResourceConfig", `{"comm_resource_config.protocol_desc": ["hccs:device", "ub_ctp:host"]}`},
		{103900, "GlobalResourceConfig", `{"comm_resource_config.local_comm_res_path": "/nowhere/at all"}`},
		{103900, "GlobalResourceConfig", `{"comm_resource_config.local_comm_res_path": "/dev/zero"}`},
		{103900, "GlobalResourceConfig", `{"comm_resource_config.local_comm_res_path": "/"}`},
		{103900, "LocalCommRes", ""},
		{103900, "LocalCommRes", "5"},
		{103900, "LocalCommRes", "{}"},
		{103900, "LocalCommRes", `{"version": 1.3}`},
		{103905, "LocalCommRes", `{"version": "1.0"}`},
		{103905, "LocalCommRes", `{"version": "1.2"}`},
		{103900, "LocalCommRes", `{"version": "1.3"}`},
		{103900, "LocalCommRes", `{"version": "1.3", "endpoint_list": []}`},
		{103900, "LocalCommRes", `{"version": "1.3", "endpoint_list": [1]}`},
		{103900, "LocalCommRes", `{"version": "1.3", "endpoint_list": [{}]}`},
		{103900, "LocalCommRes", `{"version": "1.3", "more": 1}`},
		{103900, "LocalCommRes", `{"version": "1.3", "endpoint_list": [{"protocol": "roce", "comm_id": "x", "placement": "host"}]}`},
		{103900, "LocalCommRes", `{"version": "1.3", "endpoint_list": [{"protocol": "ib", "comm_id": "1.1.1.1", "placement": "host"}]}`},
		{103905, "LocalCommRes", `{"version": "1.3", "endpoint_list": [{"protocol": "roce", "comm_id": "1.1.1.1", "placement": "device"}]}`},
		{103900, "LocalCommRes", `{"version": "1.3", "endpoint_list": [` + strings.Repeat(`{},`, 64) + `{}]}`},
	} {
		o, err := engine.ParseOptions(map[string]string{c.key: c.value}, nil)
		require.Nil(t, o)
		require.Error(t, err, "%.40s=%.80s", c.key, c.value)
		require.Equal(t, c.status, engine.StatusOf(err), "%.40s=%.80s: %v", c.key, c.value, err)
		require.Less(t, len(err.Error()), 800)
	}
	_, err := engine.ParseOptions(map[string]string{"EnableUseFabricMem": "1", "BufferPool": "4:8"}, nil)
	require.ErrorIs(t, err, engine.ErrParamInvalid)
	require.ErrorContains(t, err, "exclude each other")
	big := filepath.Join(t.TempDir(), "big")
	require.NoError(t, os.WriteFile(big, []byte(long), 0o600))
	_, err = engine.ParseOptions(map[string]string{"GlobalResourceConfig": fmt.Sprintf(`{"comm_resource_config.local_comm_res_path": %q}`, big)}, nil)
	require.ErrorContains(t, err, "1048577 bytes")
}

// Whatever an option says, it is understood within its limits, or refused with a
// status and a message.
func checkOption(t *testing.T, key, value string) {
	if strings.Contains(value, "path") {
		return // the file system is not this test's
	}
	o, err := engine.ParseOptions(map[string]string{key: value}, nil)
	if err != nil {
		require.Contains(t, []engine.Status{engine.StatusParamInvalid, engine.StatusUnsupported}, engine.StatusOf(err))
		require.Less(t, len(err.Error()), 4096)
		return
	}
	r := &o.Resources
	require.Zero(t, o.TrafficClass%4)
	require.LessOrEqual(t, o.ServiceLevel, uint8(7))
	require.LessOrEqual(t, uint64(o.Buffers)*o.BufferSize, uint64(engine.MaxBufferBytes))
	require.True(t, 1 <= r.ConnectThreads && r.ConnectThreads <= 64 && 1 <= r.ConnectQueue && r.ConnectQueue <= 65535)
	require.True(t, 0 <= r.MaxChannel && r.MaxChannel <= 512 && 0 <= r.LowWaterline && r.LowWaterline <= r.HighWaterline && r.HighWaterline <= 1)
	require.True(t, 1 <= r.MaxActiveChannels && r.MaxActiveChannels <= 65535 && -1 <= r.QoS && r.QoS <= 7)
	if o.CommRes != nil {
		require.True(t, 1 <= len(o.CommRes.Endpoints) && len(o.CommRes.Endpoints) <= 64)
	}
}

func FuzzOptions(f *testing.F) {
	f.Add("BufferPool", "4:8")
	f.Add("RdmaTrafficClass", "132")
	f.Add("AutoConnect", "1")
	f.Fuzz(checkOption)
}

func FuzzGlobalResourceConfig(f *testing.F) {
	f.Add(`{"connect_pool": {"thread_num": "4"}, "channel_pool.high_waterline": 0.5}`)
	f.Add(`{"comm_resource_config.protocol_desc": ["roce:host"], "fabric_memory.enable_aicpu_unfold": false}`)
	f.Fuzz(func(t *testing.T, s string) { checkOption(t, engine.OptionGlobalResourceConfig, s) })
}

func FuzzLocalCommRes(f *testing.F) {
	f.Add(`{"version":"1.3","net_instance_id":"i","endpoint_list":[{"protocol":"roce","comm_id":"1.2.3.4","placement":"host"}]}`)
	f.Add(`{"version":"1.2"}`)
	f.Fuzz(func(t *testing.T, s string) { checkOption(t, engine.OptionLocalCommRes, s) })
}
