package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ResourceConfig is the option GlobalResourceConfig: JSON whose keys are such as
// "connect_pool.thread_num", or objects within an object, {"connect_pool":
// {"thread_num": 4}}. Numbers and bools may be strings.
type ResourceConfig struct {
	// ConnectThreads is connect_pool.thread_num, 1..64, default 2: how many
	// ConnectAsync and DisconnectAsync run at a time. ConnectQueue is
	// connect_pool.task_queue_capacity, 1..65535, default 128: how many more wait.
	ConnectThreads, ConnectQueue int
	// MaxChannel is channel_pool.max_channel, 1..512: how many links there may be; 0
	// is no bound. When HighWaterline of them (channel_pool.high_waterline, 0..1)
	// are connected and one more is, those not used for ten seconds are disconnected until
	// LowWaterline (channel_pool.low_waterline) are left; their next use connects them
	// again. Waterlines without MaxChannel are parts of 512.
	MaxChannel                  int
	HighWaterline, LowWaterline float64
	// MaxActiveChannels is comm_resource_config.max_active_channels, 1..65535,
	// default 128: how many links have asynchronous transfers under way.
	MaxActiveChannels int
	// Protocols is comm_resource_config.protocol_desc. If given, roce:host must be
	// among them.
	Protocols []string
	// LocalCommResPath is comm_resource_config.local_comm_res_path.
	LocalCommResPath string
	// ListenPort is comm_resource_config.listen_port, 0..65535, and QoS is
	// comm_resource_config.qos, 0..7, -1 if missing. Both are kept: data and control use
	// the one port of the local engine, and IP has no service level.
	ListenPort, QoS int
	// Fabric is what fabric_memory says. It is kept: there is no such memory.
	Fabric FabricConfig
}

// FabricConfig is the part fabric_memory of GlobalResourceConfig.
type FabricConfig struct {
	// MaxCapacity is max_capacity in TB, 1..1024, default 32; StartAddress is
	// start_address in TB, default 40; Streams is task_stream_num, 1..8, default 4;
	// Unfold is enable_aicpu_unfold, default true.
	MaxCapacity, StartAddress, Streams int
	Unfold                             bool
}

func defaultResources() ResourceConfig {
	return ResourceConfig{
		ConnectThreads: 2, ConnectQueue: 128, MaxActiveChannels: 128, QoS: -1,
		Fabric: FabricConfig{MaxCapacity: 32, StartAddress: 40, Streams: 4, Unfold: true},
	}
}

// maxLinks is how many links HIXL has in its older mode.
const maxLinks = 512

// protocols are all that protocol_desc may name.
var protocols = []string{"roce:device", "hccs:device", "ub_ctp:device", "uboe:device", "ub_rtp:device", "roce:host", "ub_ctp:host"}

// hostRoCE is what this package speaks.
const hostRoCE = "roce:host"

// setters say how each key is read.
func (c *ResourceConfig) setters() map[string]func(any) error {
	return map[string]func(any) error{
		"fabric_memory.max_capacity":               intKey(&c.Fabric.MaxCapacity, 1, 1024),
		"fabric_memory.start_address":              intKey(&c.Fabric.StartAddress, 0, 1<<20),
		"fabric_memory.task_stream_num":            intKey(&c.Fabric.Streams, 1, 8),
		"fabric_memory.enable_aicpu_unfold":        boolKey(&c.Fabric.Unfold),
		"connect_pool.thread_num":                  intKey(&c.ConnectThreads, 1, 64),
		"connect_pool.task_queue_capacity":         intKey(&c.ConnectQueue, 1, 65535),
		"channel_pool.max_channel":                 intKey(&c.MaxChannel, 1, maxLinks),
		"channel_pool.high_waterline":              fractionKey(&c.HighWaterline),
		"channel_pool.low_waterline":               fractionKey(&c.LowWaterline),
		"comm_resource_config.protocol_desc":       listKey(&c.Protocols),
		"comm_resource_config.listen_port":         intKey(&c.ListenPort, 0, 65535),
		"comm_resource_config.qos":                 intKey(&c.QoS, 0, 7),
		"comm_resource_config.max_active_channels": intKey(&c.MaxActiveChannels, 1, 65535),
		"comm_resource_config.local_comm_res_path": textKey(&c.LocalCommResPath, 4096),
	}
}

// parse reads the option.
func (c *ResourceConfig) parse(text []byte) error {
	v, err := decodeJSON(text)
	if err != nil {
		return invalid("option %s: %w", OptionGlobalResourceConfig, err)
	}
	all, ok := v.(map[string]any)
	if !ok {
		return invalid("option %s is no JSON object", OptionGlobalResourceConfig)
	}
	keys, err := flatten(all)
	if err != nil {
		return invalid("option %s: %w", OptionGlobalResourceConfig, err)
	}
	setters := c.setters()
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		set := setters[key]
		if set == nil {
			return invalid("option %s: key %q, known: %s", OptionGlobalResourceConfig, clip(key), strings.Join(slices.Sorted(maps.Keys(setters)), ", "))
		}
		if err := set(keys[key]); err != nil {
			return invalid("option %s: %s is %w", OptionGlobalResourceConfig, key, err)
		}
	}
	return c.check()
}

// check looks at what must fit together.
func (c *ResourceConfig) check() error {
	switch high, low := c.HighWaterline, c.LowWaterline; {
	case high == 0 && low != 0:
		return invalid("option %s: channel_pool.low_waterline needs channel_pool.high_waterline", OptionGlobalResourceConfig)
	case low > high:
		return invalid("option %s: channel_pool.low_waterline %v is above channel_pool.high_waterline %v", OptionGlobalResourceConfig, low, high)
	}
	for _, p := range c.Protocols {
		if !slices.Contains(protocols, p) {
			return invalid("option %s: protocol %q, known: %s", OptionGlobalResourceConfig, clip(p), strings.Join(protocols, ", "))
		}
	}
	if len(c.Protocols) > 0 && !slices.Contains(c.Protocols, hostRoCE) {
		return unsupported("option %s: none of the protocols %s, only %s", OptionGlobalResourceConfig, strings.Join(c.Protocols, ", "), hostRoCE)
	}
	return nil
}

// flatten joins the keys of objects within an object by dots.
func flatten(all map[string]any) (map[string]any, error) {
	flat := make(map[string]any, len(all))
	put := func(key string, v any) error {
		if _, twice := flat[key]; twice {
			return fmt.Errorf("key %q comes twice", clip(key))
		}
		flat[key] = v
		return nil
	}
	for group, v := range all {
		inner, ok := v.(map[string]any)
		if !ok {
			if err := put(group, v); err != nil {
				return nil, err
			}
			continue
		}
		for key, v := range inner {
			if err := put(group+"."+key, v); err != nil {
				return nil, err
			}
		}
	}
	return flat, nil
}

// textOf is a number, bool or string as text.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case nil:
		return "null"
	case []any:
		return "a list"
	}
	return "an object"
}

func intKey(p *int, low, high int) func(any) error {
	return func(v any) error {
		n, err := strconv.ParseUint(textOf(v), 10, 31)
		if err != nil || int(n) < low || int(n) > high {
			return fmt.Errorf("%q, allowed: %d to %d", clip(textOf(v)), low, high)
		}
		*p = int(n)
		return nil
	}
}

func fractionKey(p *float64) func(any) error {
	return func(v any) error {
		x, err := strconv.ParseFloat(textOf(v), 64)
		if err != nil || !(x > 0 && x <= 1) {
			return fmt.Errorf("%q, allowed: more than 0, up to 1", clip(textOf(v)))
		}
		*p = x
		return nil
	}
}

func boolKey(p *bool) func(any) error {
	return func(v any) error {
		switch textOf(v) {
		case "true", "1":
			*p = true
		case "false", "0":
			*p = false
		default:
			return fmt.Errorf("%q, allowed: true, false", clip(textOf(v)))
		}
		return nil
	}
}

func textKey(p *string, limit int) func(any) error {
	return func(v any) error {
		s, ok := v.(string)
		if !ok || s == "" || len(s) > limit {
			return fmt.Errorf("%q, allowed: text of 1 to %d bytes", clip(textOf(v)), limit)
		}
		*p = s
		return nil
	}
}

func listKey(p *[]string) func(any) error {
	return func(v any) error {
		list, ok := v.([]any)
		if !ok || len(list) > 64 {
			return fmt.Errorf("%q, allowed: a list of up to 64 texts", clip(textOf(v)))
		}
		all := make([]string, 0, len(list))
		for _, x := range list {
			s, ok := x.(string)
			if !ok {
				return fmt.Errorf("a list with %q, allowed: texts", clip(textOf(x)))
			}
			all = append(all, s)
		}
		*p = all
		return nil
	}
}
