package archtest

import (
	"fmt"
	"slices"
	"strings"
)

const module = "github.com/gohixl/hixl"

// below lists, for groups that several packages stand on, what "and below"
// means in the layer graph.
var (
	belowQP  = []string{"roce", "roce/wr", "roce/rc", "roce/uc", "roce/ud", "roce/cm", "mr", "atomic", "cq", "device", "internal/mono", "internal/pages"}
	belowNIC = append([]string{"qp", "transport"}, belowQP...)
	belowHub = append([]string{
		"internal/nic", "internal/connmgr", "internal/dispatch", "internal/peerwire", "internal/peerlink", "internal/coalesce",
		"device/host", "transport/udp", "transport/sim", "transport/tap",
	}, belowNIC...)
	belowAll = append([]string{"."}, belowHub...)
)

// graph says what each package of the module may import of the module, by its
// path below the module's root. A path ending in "/*" stands for the folder and
// all below it; as a key, for those that have no line of their own.
var graph = map[string][]string{
	"internal/mono":      nil,
	"internal/pages":     nil,
	"roce":               {"roce/internal/crc"}, // the CRC kernels, a part of it
	"roce/internal/crc":  nil,
	"device":             nil,
	"device/*":           {"device", "internal/mono", "internal/pages"},
	"atomic":             {"device"},
	"mr":                 {"device"},
	"cq":                 {"roce"},
	"roce/wr":            {"roce", "mr", "cq", "internal/mono"},
	"roce/rc":            {"roce", "roce/wr", "mr", "atomic", "cq", "internal/mono"},
	"roce/uc":            {"roce", "roce/wr", "mr", "cq", "internal/mono"},
	"roce/ud":            {"roce", "roce/wr", "mr", "cq", "internal/mono"},
	"roce/cm":            {"roce", "internal/mono"},
	"roce/layers":        {"roce"},
	"qp":                 belowQP,
	"transport":          {"roce"},
	"transport/*":        {"transport", "roce", "internal/mono"},
	"transport/xdp":      {"transport", "transport/udp", "roce", "internal/mono"},
	"transport/xdp/*":    nil,
	"internal/nic":       belowNIC,
	"internal/dispatch":  {"internal/mono"},
	"internal/peerwire":  nil,
	"internal/peerlink":  {"internal/mono"},
	"internal/coalesce":  {"internal/mono"},
	"internal/connmgr":   append([]string{"internal/nic", "device/host"}, belowNIC...),
	".":                  belowHub,
	"internal/syncproto": {"internal/mono"},
	"dsync":              {".", "internal/syncproto"},
	"engine":             {"."},
	"interop":            {"."},
	"interop/*":          append([]string{"interop/*", "internal/dump", "transport/xdp"}, belowAll...),
	"bench":              append([]string{"transport/faults"}, belowAll...),

	"internal/tools":    belowAll,
	"internal/tools/*":  append([]string{"internal/tools/*"}, belowAll...),
	"internal/archtest": nil,
	"internal/hostinfo": {"roce"},
	"internal/dump":     {"roce", "roce/layers", "transport", "transport/tap"},
	"cmd/*":             append([]string{"bench", "roce/layers", "transport/faults", "transport/xdp/*", "internal/hostinfo", "internal/dump", "internal/tools/*", "device/ascend", "device/staged"}, belowAll...),
}

// external says which packages may import a foreign module, or one package of
// it that has a line of its own. A path ending in "/*" stands for the folder
// and all below it. Tests and test packages may import any module listed here.
var external = map[string][]string{
	"golang.org/x/sys":                        {"device/*", "transport/*", "internal/nic", "internal/pages", "internal/hostinfo", "bench", "cmd/*", "interop/*"},
	"golang.org/x/sys/cpu":                    {"roce/internal/crc", "internal/hostinfo"}, // reads the processor's features at start, no I/O: which CRC kernel to run
	"golang.org/x/term":                       {"bench", "cmd/*"},
	"github.com/google/gopacket":              {"roce/layers", "internal/dump", "cmd/*"},
	"github.com/spf13/cobra":                  {"cmd/*"},
	"github.com/spf13/pflag":                  {"cmd/*"},
	"github.com/schollz/progressbar/v3":       {"bench", "cmd/*"},
	"github.com/HdrHistogram/hdrhistogram-go": {"bench", "cmd/*"},
	"github.com/prometheus/client_golang":     {"cmd/*"},
	"github.com/cilium/ebpf":                  {"transport/xdp"},
	"github.com/vishvananda/netlink":          {"transport/xdp", "transport/xdp/*"},
	"github.com/ebitengine/purego":            {"device/ascend"},
	"github.com/stretchr/testify":             nil,
	"pgregory.net/rapid":                      nil,
	"go.uber.org/goleak":                      nil,
}

// pure are the packages that are a function of their arguments: time and
// packets come in, nothing is read from outside.
var pure = []string{"roce", "roce/wr", "roce/rc", "roce/uc", "roce/ud", "roce/cm", "internal/peerwire", "internal/peerlink", "internal/coalesce", "internal/syncproto"}

// pureMayNot are the standard packages that a pure package must not import,
// with all below them.
var pureMayNot = []string{"net", "os", "syscall", "sync", "context", "log", "runtime", "io/fs", "math/rand", "crypto/rand"}

// clocks are the packages that may read or wait for a clock.
var clocks = []string{"internal/nic", "dsync", "internal/dispatch", "internal/hostinfo", "internal/tools/*", "transport/*", "device/*", "bench", "cmd/*", "interop/*"}

// clockFuncs are the functions of package time that do.
var clockFuncs = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// userBuild lists modules that a program importing only the root package must
// not have to compile.
var userBuild = []string{
	"github.com/spf13", "github.com/google/gopacket", "github.com/schollz", "github.com/HdrHistogram",
	"github.com/prometheus", "github.com/cilium/ebpf", "github.com/ebitengine/purego",
	"github.com/vishvananda/netlink", "golang.org/x/term", "github.com/stretchr/testify",
}

// matches reports whether the package at path is meant by one of the patterns.
func matches(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		dir, all := strings.CutSuffix(p, "/*")
		return path == dir || (all && strings.HasPrefix(path, dir+"/"))
	})
}

// isOrBelow reports whether an import path is one of the roots or below one.
func isOrBelow(imp string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(r string) bool {
		return imp == r || strings.HasPrefix(imp, r+"/")
	})
}

// rule returns what the package at path may import, and whether the table
// knows the package at all: by its own line, or that of the nearest folder.
func rule(path string) ([]string, bool) {
	if may, ok := graph[path]; ok {
		return may, true
	}
	for i := strings.LastIndexByte(path, '/'); i >= 0; i = strings.LastIndexByte(path[:i], '/') {
		if may, ok := graph[path[:i]+"/*"]; ok {
			return may, true
		}
	}
	return nil, false
}

// ours turns an import path into a path below the module's root.
func ours(imp string) (string, bool) {
	if imp == module {
		return ".", true
	}
	return strings.CutPrefix(imp, module+"/")
}

// testPackages serve tests alone and import what tests may. A name that ends in
// test is not enough: perftest is a program's.
var testPackages = []string{
	"transport/transporttest", "device/devicetest", "internal/nic/nictest", "internal/nic/hostiletest",
	"internal/tools/toolstest", "internal/hosttest", "internal/archtest", "internal/chaostest",
}

func isTestPackage(path string) bool { return slices.Contains(testPackages, path) }

// judgeImport says what is wrong with a file of the package at path importing
// imp, or nothing.
func judgeImport(path, imp string, test bool) string {
	if imp == "C" {
		return "cgo: every build of this module works without a C compiler"
	}
	if target, ok := ours(imp); ok {
		return judgeOurs(path, target, test)
	}
	first, _, _ := strings.Cut(imp, "/")
	if !strings.Contains(first, ".") {
		if !test && slices.Contains(pure, path) && isOrBelow(imp, pureMayNot...) && imp != "net/netip" {
			return "a protocol engine does no I/O, holds no lock and starts nothing"
		}
		return ""
	}
	return judgeExternal(path, imp, test)
}

func judgeOurs(path, target string, test bool) string {
	if test || isTestPackage(path) {
		return ""
	}
	if isTestPackage(target) {
		return "only tests and packages that serve them import this"
	}
	may, known := rule(path)
	if !known {
		return fmt.Sprintf("no line for package %s in the table of graph_test.go", path)
	}
	if matches(target, may) {
		return ""
	}
	return fmt.Sprintf("%s may import of this module: %s", path, strings.Join(may, " "))
}

func judgeExternal(path, imp string, test bool) string {
	mod := listed(imp)
	if mod == "" {
		return "a foreign module that the table of graph_test.go does not list"
	}
	who := external[mod]
	if test || isTestPackage(path) || matches(path, who) {
		return ""
	}
	return fmt.Sprintf("%s is for: %s", mod, strings.Join(append(slices.Clone(who), "tests"), " "))
}

// listed returns the line of external that an import falls under: the longest.
func listed(imp string) (mod string) {
	for m := range external {
		if isOrBelow(imp, m) && len(m) > len(mod) {
			mod = m
		}
	}
	return mod
}
