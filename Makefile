# Sluice. Start with: make demo (a running example) or make test.
#
# All downloads of this file's targets are kept in $(SLUICE_CACHE).

SHELL        := /bin/sh
SLUICE_CACHE ?= $(CURDIR)/.cache
export SLUICE_CACHE

PROGRAMS := sluiced sluicectl sluice-lab

.PHONY: all deps deps-lab generate build lint generated test test-vm test-nightly bench bench-vm demo demo-down clean

all: build

# Debian packages for building and testing, if some are missing.
deps:
	@tools/deps.sh test

deps-lab:
	@tools/deps.sh lab

# Everything that is made of something else: eBPF objects and their Go types,
# OVSDB models, drop reasons, reference pages.
generate:
	go generate ./...

build:
	tools/build.sh $(PROGRAMS)

lint:
	@tools/lint.sh

generated:
	@tools/generated.sh

# Everything that has to pass before a change is taken. Needs root.
test: deps
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory generated
	@$(MAKE) --no-print-directory build
	@tools/gotest.sh

# A part of that: what runs under other kernels, in virtual machines.
test-vm: deps
	@tools/gotest.sh ./test/vm

# The same, longer: more random restarts, fuzzing, other kernels in VMs. With PACKAGES
# it is a part of it: make test-nightly PACKAGES=./test/vm, or PACKAGES=fuzz.
test-nightly:
	@tools/deps.sh nightly
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory generated
	@$(MAKE) --no-print-directory build
	@[ "$(PACKAGES)" = fuzz ] || SLUICE_NIGHTLY=1 tools/gotest.sh -count=1 -timeout 4h $(PACKAGES)
	@[ -n "$(filter-out fuzz,$(PACKAGES))" ] || tools/fuzz.sh

# Side-by-side measurements; also writes build/bench.json.
bench: deps-lab build
	@mkdir -p build
	go run ./test/bench -out build/bench.json

# Those of them that need Open vSwitch's kernel datapath, in virtual machines.
bench-vm:
	@tools/deps.sh test
	go test -count=1 -timeout 3h -tags bench -run TestBench -v ./test/vm

# Two clouds, a route reflector and sluiced in each; stays up.
demo: deps-lab build
	@bin/sluice-lab demo

demo-down: build
	@bin/sluice-lab down

clean:
	rm -rf bin build
