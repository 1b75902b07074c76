# Everything one does with nexthop. `make` lists the targets.

LANGS ?= rust c python node java go
VECTORS ?= tests/vectors
CARGO ?= cargo
SEEDS ?= 1000
MINUTES ?= 10
PREEMPTIONS ?= 2
# A fixed set, about a minute.
PARITY_SEEDS = 99
RUST_CRATES = --workspace --exclude nexthop-python --exclude nexthop-node

.PHONY: help demo test bench lint build conformance generate clean \
  build-rust build-c build-python build-node build-java build-go \
  test-generated test-rust test-translated test-c test-python test-node test-java test-go test-conformance \
  test-parity test-soak test-loom parity soak fuzz loom sanitize

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(LANGS:%=build-%) ## Run the experiment on real HTTP traffic in every language (LANGS="python go" for some)
	$(CARGO) build --locked --release -p nexthop-lab
	$(CARGO) run --locked --quiet --release -p nexthop-lab --bin demo -- --langs "$(LANGS)"

build: $(LANGS:%=build-%) ## Build every face: wheel, addon, jar, Go archive, C library

build-rust:
	$(CARGO) build --locked --release -p nexthop -p nexthop-lab -p nexthop-rust-examples
build-c:
	@scripts/with c examples/c/build.sh
build-python:
	@scripts/with python python/build.sh
build-node:
	@scripts/with node node/build.sh
build-java:
	@scripts/with java java/build.sh
build-go:
	@scripts/with go go/build.sh

# Tests build without link-time optimisation, which is most of what a build takes, and so in a directory of their own.
test: export CARGO_TARGET_DIR := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/test
test: export CARGO_PROFILE_RELEASE_LTO = off
test: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS = 16
test: export CARGO_PROFILE_RELEASE_OPT_LEVEL = 1
test: test-generated test-rust test-loom test-translated test-c test-python test-node test-java test-go test-conformance test-parity test-soak ## Run every test of every face
	@echo "make test: everything passed"

test-loom:
	LOOM_MAX_PREEMPTIONS=1 scripts/loom
test-generated:
	ffi/generate-header.sh --check
test-rust:
	$(CARGO) test --locked $(RUST_CRATES)
test-translated:
	$(CARGO) build --locked --quiet -p nexthop --bin nexthop
	@tests/translated/run.sh "$${CARGO_TARGET_DIR:-$(CURDIR)/target}/debug/nexthop"
test-c: build-c
	@scripts/with c ffi/run-tests.sh
test-python: build-python
	@scripts/with python python/test.sh
test-node: build-node
	@scripts/with node node/test.sh
test-java: build-java
	@scripts/with java java/test.sh
test-go: build-go
	@scripts/with go go/test.sh
test-conformance: build-rust build-c build-python build-node build-java build-go
	$(CARGO) build --locked --release -p nexthop-conformance
	$(CARGO) run --locked --quiet --release -p nexthop-conformance --bin nexthop-conformance -- --not-pending $(VECTORS)

test-parity: build-python
	@scripts/with python tests/parity/run.sh --seeds $(PARITY_SEEDS)
	@scripts/with python tests/parity/run.sh --config --quick
test-soak:
	$(CARGO) run --locked --quiet -p nexthop-soak -- --seconds 20

parity: build-python ## Generated cases through a real Envoy and nexthop (SEEDS=n); writes docs/parity.md
	@scripts/with python tests/parity/run.sh --seeds $(SEEDS) --report docs/parity.md
	@scripts/with python tests/parity/run.sh --config

soak: ## Many clusters, updates and dying backends for a while: flat memory, no gauge off zero (MINUTES=n)
	$(CARGO) run --locked --release -p nexthop-soak -- --minutes $(MINUTES)

sanitize: build-go ## Threads under ThreadSanitizer (a nightly toolchain with rust-src), Go under AddressSanitizer
	tests/sanitize.sh

loom: ## Models of what threads do to each other, every interleaving up to so many preemptions (PREEMPTIONS=n)
	LOOM_MAX_PREEMPTIONS=$(PREEMPTIONS) scripts/loom

fuzz: ## Fuzz every target for a while, with cargo-fuzz and a nightly toolchain (MINUTES=n for each)
	fuzz/run.sh $(MINUTES)

conformance: build-rust build-c build-python build-node build-java build-go ## Replay the vectors through every face, pending ones too (VECTORS="dir dir")
	$(CARGO) build --locked --release -p nexthop-conformance
	$(CARGO) run --locked --quiet --release -p nexthop-conformance --bin nexthop-conformance -- $(VECTORS)

bench: build ## Measure every face against its limits, in one run
	benches/run.sh $(LANGS)

lint: ## Formatting, lints, file sizes, dependency rules
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	scripts/lint-files

generate: ## Write the generated files anew: include/nexthop.h
	ffi/generate-header.sh

clean: ## Remove what was built
	$(CARGO) clean
	rm -rf python/.venv node/node_modules node/nexthop.node java/target go/internal/native/libnexthop.a
