# The same targets run on a desk and in .ci/run. Only `make race` needs a C
# compiler (the race detector is built with cgo); nothing else does.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help

GO        ?= go
FUZZTIME  ?= 30s
BENCH     ?= .
BENCHTIME ?= 1x
# What is built for each of these must compile, tests included.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/arm64 windows/amd64

export CGO_ENABLED := 0

# Tools are pinned in tools/go.mod. golangci-lint takes minutes to compile, so
# each is built once per version and kept in .cache/bin.
BIN       := .cache/bin
toolver    = $(shell awk 'NF > 1 && $$1 == "$(1)" { print $$2 }' tools/go.mod)
LINT_VER  := $(call toolver,github.com/golangci/golangci-lint/v2)
FUMPT_VER := $(call toolver,mvdan.cc/gofumpt)
STAT_VER  := $(call toolver,golang.org/x/perf)
LINT      := $(BIN)/golangci-lint-$(LINT_VER)
FUMPT     := $(BIN)/gofumpt-$(FUMPT_VER)
BENCHSTAT := $(BIN)/benchstat-$(STAT_VER)
GOFILES    = $$(git ls-files --cached --others --exclude-standard '*.go')

.PHONY: help
help: ## show this list
	@awk -F':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check fmt vet lint tidy generate cross static
check: fmt vet tidy generate cross static lint ## all checks that run no protocol test

fmt: $(FUMPT) ## gofumpt has nothing to change
	@out=$$($(FUMPT) -d $(GOFILES)); [ -z "$$out" ] || { echo "$$out"; echo "run: make format"; exit 1; }

.PHONY: format
format: $(FUMPT) ## rewrite the sources as gofumpt wants them
	@$(FUMPT) -w $(GOFILES)

vet: ## go vet
	$(GO) vet ./...

lint: $(LINT) ## golangci-lint, the import rules among its checks
	$(LINT) run ./...

tidy: ## go.mod and go.sum list what is used and nothing else
	$(GO) mod tidy -diff
	cd tools && $(GO) mod tidy -diff

generate: ## generated code is what its generator writes
	@if ! git grep -qE '^//go:generate ' -- '*.go'; then echo "generate: no generated code"; exit 0; fi
	before=$$(git diff; git status --porcelain)
	$(GO) generate ./...
	after=$$(git diff; git status --porcelain)
	[ "$$before" = "$$after" ] || { git status --short; echo "generated code differs: commit what go generate wrote"; exit 1; }

cross: ## every platform of PLATFORMS compiles, tests included
	@for p in $(PLATFORMS); do
	  echo "build and vet $$p"
	  GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build ./...
	  GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) vet ./...
	done

static: ## binaries built without cgo need no dynamic linker
	$(GO) test -count=1 -run '^TestBinariesAreStatic$$' ./internal/archtest -archs amd64,arm64

.PHONY: test test-arm64 race fuzz bench
test: ## all tests, shuffled
	$(GO) test -shuffle=on ./...

test-arm64: ## tests of the wire and its CRC kernels for arm64, emulated elsewhere (Debian: qemu-user-static)
	@qemu=
	if [ "$$($(GO) env GOHOSTARCH)" != arm64 ]; then
	  qemu=$$(command -v qemu-aarch64-static || command -v qemu-aarch64) || { echo "test-arm64 needs qemu-aarch64: Debian's package qemu-user-static"; exit 1; }
	fi
	GOARCH=arm64 $(GO) test $${qemu:+-exec "$$qemu"} ./roce/internal/crc ./roce

race: ## all tests under the race detector, shuffled (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -shuffle=on ./...

fuzz: ## every fuzz target for FUZZTIME (30s, or a count such as 10000x)
	@mkdir -p .cache
	$(GO) test -list '^Fuzz' ./... | awk '/^Fuzz/ { t[n++] = $$1 } /^(ok|\?)/ { for (i = 0; i < n; i++) print $$2, t[i]; n = 0 }' > .cache/fuzz-targets
	count=0
	while read -r pkg target; do
	  echo "fuzz $$target $$pkg"
	  $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1000x "$$pkg"
	  count=$$((count + 1))
	done < .cache/fuzz-targets
	echo "fuzz: $$count targets"

bench: ## Go benchmarks (BENCHTIME, BENCH), then the loopback benchmark
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) ./...
	$(GO) run ./cmd/hixl-bench

.PHONY: bench-smoke
bench-smoke: ## a few seconds of the loopback benchmark, without and with injected faults
	$(GO) run ./cmd/hixl-bench --size 64,64KiB --duration 100ms --rounds 1
	$(GO) run ./cmd/hixl-bench --size 64KiB --duration 100ms --rounds 1 --baseline none --loss 0.01 --reorder 0.01

.PHONY: ascendsim
ascendsim: ## the library that stands in for the Ascend driver, in .cache/ascendsim (gcc)
	@mkdir -p .cache/ascendsim
	for lib in libascendcl.so=src libascend_hal.so=src/hal; do
	  gcc -O2 -fPIC -shared -fvisibility=hidden -pthread -o .cache/ascendsim/$${lib%=*} device/ascend/ascendsim/$${lib#*=}/*.c -ldl
	done
	echo "HIXL_ASCEND_LIBRARY=$$PWD/.cache/ascendsim/libascendcl.so HIXL_ASCEND_DRIVER=$$PWD/.cache/ascendsim/libascend_hal.so"

.PHONY: bench-results bench-floors bench-compare .cache/hixl-bench
bench-results: bench-floors bench-compare ## measure everything anew into bench/RESULTS.md and bench/compare.html (root, 20 minutes on a quiet machine; ucx-utils, iperf3, libfabric-bin)

bench-floors: .cache/hixl-bench ## measure the goals of the datapath into bench/RESULTS.md, each in two passes
	.cache/hixl-bench floors --passes 2 --into bench/RESULTS.md

bench-compare: .cache/hixl-bench ## measure all contenders by size into bench/RESULTS.md and bench/compare.html
	.cache/hixl-bench compare --rounds 7 --duration 700ms --into bench/RESULTS.md --plot bench/compare.html

.cache/hixl-bench:
	@mkdir -p .cache
	$(GO) build -o $@ ./cmd/hixl-bench

.PHONY: soak-xdp
soak-xdp: ## AF_XDP under link flaps, expiring neighbours and MTU changes for SOAK (10m); tests run it for 3 s (Linux, root)
	HIXL_XDP_SOAK=$${SOAK:-10m} $(GO) test -count 1 -v -timeout 0 -run '^TestSoak$$' ./transport/xdp

.PHONY: chaos
chaos: ## the chaos test for CHAOS seeds (2000), and 200 under the race detector (a C compiler, some 20 minutes)
	HIXL_CHAOS_SEEDS=$${CHAOS:-2000} $(GO) test -count 1 -timeout 0 -run '^TestChaos' ./internal/chaostest
	HIXL_CHAOS_SEEDS=200 CGO_ENABLED=1 $(GO) test -race -count 1 -timeout 0 ./internal/chaostest

.PHONY: interop interop-smoke interop-xdp
interop: ## the whole matrix against rdma_rxe in user-mode Linux; writes interop/INTEROP.md and report.json (root, Debian)
	$(GO) run ./interop/cmd/interop -write

interop-xdp: ## the same with ours on raw frames by AF_XDP, native and generic; writes interop/INTEROP-XDP.md and xdp-report.json (root, Debian)
	$(GO) run ./interop/cmd/interop -xdp native,generic -write

interop-smoke: ## a few of the tools against rdma_rxe in Debian's own kernel, emulated (root, Debian)
	$(GO) run ./interop/cmd/interop -backend qemu -smoke

.PHONY: tools
tools: $(LINT) $(FUMPT) $(BENCHSTAT) ## build the pinned tools into .cache/bin

$(LINT):
	@mkdir -p $(BIN); echo "building golangci-lint $(LINT_VER), once (about 5 minutes on two cores)"
	cd tools && $(GO) build -trimpath -ldflags '-s -w -X main.version=$(LINT_VER:v%=%)' -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(FUMPT):
	@mkdir -p $(BIN)
	cd tools && $(GO) build -o ../$@ mvdan.cc/gofumpt

$(BENCHSTAT):
	@mkdir -p $(BIN)
	cd tools && $(GO) build -o ../$@ golang.org/x/perf/cmd/benchstat
