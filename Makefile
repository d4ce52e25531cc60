# Sluice. Start with: make demo (a running example) or make test.
#
# All downloads of this file's targets are kept in $(SLUICE_CACHE).

SHELL        := /bin/sh
SLUICE_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sluice
export SLUICE_CACHE

# The name of the demo's lab: another name leaves a demo alone that is up.
SLUICE_LAB ?= sluice

# What is compiled is the same wherever the checkout is: clones share the go command's cache.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)

PROGRAMS := sluiced sluicectl sluice-controller sluice-lab

.PHONY: all announce-demo announce-quick announce-test deps deps-lab modules generate build lint generated quick test test-vm test-nightly bench bench-vm release vulncheck demo demo-down clean

# Prerequisites are steps, in their order.
.NOTPARALLEL:

all: build

# What a target is about to do, before it begins.
announce-demo announce-quick announce-test:
	@tools/announce.sh $(@:announce-%=%)

# Debian packages for building and testing, if some are missing.
deps:
	@tools/deps.sh test

deps-lab:
	@tools/deps.sh lab

# Go modules, without a line for each.
modules:
	@go mod download

# Everything that is made of something else: eBPF objects and their Go types,
# OVSDB models, drop reasons, reference pages.
generate:
	go generate ./pkg/drop # the header of the programs, before they are compiled
	go generate ./...

build:
	@tools/build.sh $(PROGRAMS)

lint:
	@tools/lint.sh

generated:
	@tools/generated.sh

# What a change usually breaks, in one to three minutes with warm caches. Needs root.
quick: announce-quick deps modules build
	@go run ./tools/suite quick

# Everything that has to pass before a change is taken. Needs root.
test: announce-test deps modules build
	@go run ./tools/suite test

# A part of that: what runs under another kernel, in a virtual machine.
test-vm: deps build
	@go run ./tools/suite test ./test/vm

# Everything there is, and longer: random seeds, fuzzing, all kernels. With PACKAGES it is a part
# of it: make test-nightly PACKAGES=./test/vm, or PACKAGES=fuzz.
test-nightly: deps build
	@[ "$(PACKAGES)" = fuzz ] || go run ./tools/suite nightly $(PACKAGES)
	@[ -n "$(filter-out fuzz,$(PACKAGES))" ] || tools/fuzz.sh

# Side-by-side measurements; also writes build/bench.json. With PARTS a part of them:
# make bench PARTS=forwarding,move
bench:
	@tools/deps.sh bench
	@$(MAKE) --no-print-directory build
	@mkdir -p build
	go run ./test/bench -out build/bench.json $(if $(PARTS),-parts $(PARTS))

# Those of them that need Open vSwitch's kernel datapath, in virtual machines.
bench-vm: deps
	go test -count=1 -timeout 3h -tags bench -run TestBench -v ./test/vm

# Two clouds, a route reflector and sluiced in each; stays up.
demo: announce-demo deps-lab build
	@bin/sluice-lab demo --name $(SLUICE_LAB)

demo-down: build
	@bin/sluice-lab down --name $(SLUICE_LAB)

# Static programs and the source of the last commit, with checksums, in build/release.
release:
	@tools/release.sh

# The Go vulnerability database against what the programs call. It asks a server: no part of lint.
vulncheck:
	@tools/vulncheck.sh

clean:
	rm -rf bin build
