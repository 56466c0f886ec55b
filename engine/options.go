package engine

import (
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The options of [Initialize].
const (
	OptionEnableUseFabricMem   = "EnableUseFabricMem"
	OptionRdmaTrafficClass     = "RdmaTrafficClass"
	OptionRdmaServiceLevel     = "RdmaServiceLevel"
	OptionBufferPool           = "BufferPool"
	OptionGlobalResourceConfig = "GlobalResourceConfig"
	OptionAutoConnect          = "AutoConnect"
	OptionLocalCommRes         = "LocalCommRes"
)

// The environment variables that stand in for options.
const (
	EnvTrafficClass = "HCCL_RDMA_TC"
	EnvServiceLevel = "HCCL_RDMA_SL"
	EnvTimeout      = "HCCL_RDMA_TIMEOUT"
	EnvRetryCount   = "HCCL_RDMA_RETRY_CNT"
	EnvIntraRoCE    = "HCCL_INTRA_ROCE_ENABLE"
	EnvIntraPCIe    = "HCCL_INTRA_PCIE_ENABLE"
)

// Limits of what an option may be.
const (
	// MaxOption is the longest value of an option, and the largest file of
	// comm_resource_config.local_comm_res_path, in bytes.
	MaxOption = 1 << 20
	// MaxBuffers and MaxBufferBytes bound BufferPool: buffers, and bytes in all.
	MaxBuffers     = 1 << 12
	MaxBufferBytes = 16 << 30
)

// Options is what the option strings say.
type Options struct {
	// TrafficClass is the second byte of the IP header, a multiple of 4, default
	// 132. ServiceLevel, 0..7, default 4, is kept; IP has none.
	TrafficClass, ServiceLevel uint8
	// Timeout is the exponent of the ACK timeout, 4.096 µs · 2^Timeout, and Retries
	// the number of retries; 0 is the default of package hixl.
	Timeout, Retries int
	// Buffers of BufferSize bytes each carry unregistered local memory; 0 is none.
	// Default 4 of 8 MiB.
	Buffers    int
	BufferSize uint64
	// AutoConnect makes the first transfer connect.
	AutoConnect bool
	// Resources is GlobalResourceConfig, with defaults.
	Resources ResourceConfig
	// CommRes is LocalCommRes, nil without.
	CommRes *CommRes
}

// ParseOptions reads the options of [Initialize], and the environment for those that
// are missing. getenv takes the place of os.Getenv; nil leaves the environment
// out. A file that comm_resource_config.local_comm_res_path names is read. The error
// is a *[StatusError]: [StatusParamInvalid] for what makes no sense,
// [StatusUnsupported] for what this package does not have.
func ParseOptions(options map[string]string, getenv func(string) string) (*Options, error) {
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	o, err := parseOptions(options, getenv)
	return o, fail("Initialize", "", err)
}

var knownOptions = []string{
	OptionAutoConnect, OptionBufferPool, OptionEnableUseFabricMem, OptionGlobalResourceConfig, OptionLocalCommRes, OptionRdmaServiceLevel, OptionRdmaTrafficClass,
}

func parseOptions(options map[string]string, getenv func(string) string) (*Options, error) {
	for key, value := range options {
		switch {
		case !slices.Contains(knownOptions, key):
			return nil, invalid("option %q, known: %s", clip(key), strings.Join(knownOptions, ", "))
		case len(value) > MaxOption:
			return nil, invalid("option %s has %d bytes, allowed: up to %d", key, len(value), MaxOption)
		}
	}
	o := &Options{}
	for _, step := range []func() error{
		func() error { return o.parsePlain(options, getenv) },
		func() error { return o.parsePool(options) },
		func() error { return o.parseResources(options) },
		func() error { return o.parseCommRes(options) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// parsePlain reads what is a number.
func (o *Options) parsePlain(options map[string]string, getenv func(string) string) error {
	var tc, sl, fabric, auto, unused int
	for _, f := range []struct {
		value          *int
		option, env    string
		def, low, high int
	}{
		{&tc, OptionRdmaTrafficClass, EnvTrafficClass, 132, 0, 255},
		{&sl, OptionRdmaServiceLevel, EnvServiceLevel, 4, 0, 7},
		{&fabric, OptionEnableUseFabricMem, "", 0, 0, 1},
		{&auto, OptionAutoConnect, "", 0, 0, 1},
		{&o.Timeout, "", EnvTimeout, 0, 1, 31},
		{&o.Retries, "", EnvRetryCount, 0, 1, 7},
		{&unused, "", EnvIntraRoCE, 0, 0, 1},
		{&unused, "", EnvIntraPCIe, 0, 0, 1},
	} {
		*f.value = f.def
		name, text := "option "+f.option, options[f.option]
		if _, given := options[f.option]; !given {
			if f.env == "" {
				continue
			}
			if name, text = "environment variable "+f.env, getenv(f.env); text == "" {
				continue
			}
		}
		n, err := parseNumber(name, text, f.low, f.high)
		if err != nil {
			return err
		}
		*f.value = n
	}
	if tc%4 != 0 {
		return invalid("traffic class %d, allowed: multiples of 4, since its lowest bits are for congestion marks", tc)
	}
	if pool, given := options[OptionBufferPool]; fabric == 1 && given && pool != "0:0" {
		return invalid("options %s and %s exclude each other", OptionEnableUseFabricMem, OptionBufferPool)
	}
	if fabric == 1 {
		return unsupported("option %s: fabric memory is a feature of Ascend A3 hosts", OptionEnableUseFabricMem)
	}
	o.TrafficClass, o.ServiceLevel, o.AutoConnect = uint8(tc), uint8(sl), auto == 1
	return nil
}

// parsePool reads BufferPool.
func (o *Options) parsePool(options map[string]string) error {
	text, given := options[OptionBufferPool]
	if !given {
		text = "4:8"
	}
	count, size, ok := strings.Cut(text, ":")
	if !ok {
		return invalid("option %s is %q, allowed: NUM:SIZE_MB, such as 4:8, or 0:0", OptionBufferPool, clip(text))
	}
	n, err := parseNumber("the number of buffers in option "+OptionBufferPool, count, 0, MaxBuffers)
	if err != nil {
		return err
	}
	mb, err := parseNumber("the size in MB in option "+OptionBufferPool, size, 0, MaxBufferBytes>>20)
	if err != nil {
		return err
	}
	switch total := uint64(n) * uint64(mb) << 20; {
	case (n == 0) != (mb == 0):
		return invalid("option %s is %q: 0:0 switches it off", OptionBufferPool, clip(text))
	case total > MaxBufferBytes:
		return invalid("option %s is %q, %d bytes in all, allowed: up to %d", OptionBufferPool, clip(text), total, uint64(MaxBufferBytes))
	}
	o.Buffers, o.BufferSize = n, uint64(mb)<<20
	return nil
}

// parseResources reads GlobalResourceConfig.
func (o *Options) parseResources(options map[string]string) error {
	o.Resources = defaultResources()
	text, given := options[OptionGlobalResourceConfig]
	if !given {
		return nil
	}
	return o.Resources.parse([]byte(text))
}

// parseCommRes reads LocalCommRes, or the file that takes its place.
func (o *Options) parseCommRes(options map[string]string) error {
	text, given := options[OptionLocalCommRes]
	path := o.Resources.LocalCommResPath
	switch {
	case given && path != "":
		return invalid("option %s and comm_resource_config.local_comm_res_path exclude each other", OptionLocalCommRes)
	case path != "":
		b, err := readFile(path)
		if err != nil {
			return err
		}
		text = string(b)
	case !given:
		return nil
	}
	res, err := parseCommRes([]byte(text))
	if err != nil {
		return err
	}
	o.CommRes = res
	return nil
}

// readFile reads a file of 1 to MaxOption bytes.
func readFile(path string) (b []byte, err error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err == nil {
		var f *os.File
		if f, err = os.Open(path); err == nil {
			b, err = io.ReadAll(io.LimitReader(f, MaxOption+1))
			err = errors.Join(err, f.Close())
		}
	}
	switch {
	case err != nil:
		return nil, invalid("comm_resource_config.local_comm_res_path %q: %w", clip(path), err)
	case len(b) == 0 || len(b) > MaxOption:
		return nil, invalid("comm_resource_config.local_comm_res_path %q: the file has %d bytes, allowed: 1 to %d", clip(path), info.Size(), MaxOption)
	}
	return b, nil
}

// parseNumber reads a decimal number: digits, nothing else.
func parseNumber(name, text string, low, high int) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || int(n) < low || int(n) > high {
		return 0, invalid("%s is %q, allowed: %d to %d", name, clip(text), low, high)
	}
	return int(n), nil
}

// clip shortens what an error quotes.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "..."
	}
	return s
}
