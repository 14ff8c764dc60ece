# snowflake_pg: `make run` shows it, `make test` tests it; both set up what they need.

# Major version of PostgreSQL to build for.
PG ?= 15
export PG
export PGRX_HOME := $(CURDIR)/target/pgrx
export CARGO_TARGET_DIR := $(CURDIR)/target
# One line at the end says how it went, also when make runs make.
MAKEFLAGS += --no-print-directory
# Where rustup puts cargo, also for a shell that was not told.
export PATH := $(CURDIR)/target/tools/bin:$(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
# What the tools below print is read by people and by tests.
export NO_COLOR := 1

.PHONY: help run stop test soak bench bench-plot bench-against install setup setup-test setup-bench lint clean

help:
	@echo "make run      build, install, start a private server, insert and decode, say how to connect"
	@echo "make stop     stop the server of make run"
	@echo "make test     every test"
	@echo "make soak     faults in random order for SECONDS=3600, and ten minutes of idling"
	@echo "make bench    measure beside sequences and UUIDs (40 minutes), or one PART=cost, storage, oltp, contention, wire, into"
	@echo "              bench/results; fewer ROUNDS=1 or rows SCALE=100 for a try, into target/bench"
	@echo "make bench-plot   draw what was measured, beside it"
	@echo "make bench-against REV=..  cost of an ID beside that of another revision, or of this one that counts nothing: --uncounted"
	@echo "make install  build and install the extension for PostgreSQL $(PG)"
	@echo "make lint     formatting and clippy"
	@echo "Settings: PG=15 (major version), PG_CONFIG=/path/to/pg_config"

run: install
	@cargo run --quiet -p bench --bin demo

stop:
	@cargo run --quiet -p bench --bin demo stop

test: setup-test install
	@scripts/test

soak: setup-test install
	@scripts/soak $(or $(SECONDS),3600)

bench: install setup-bench
	@cargo run --quiet --profile bench -p bench --bin measure -- $(PART)

bench-plot:
	@cargo run --quiet --profile bench -p bench --bin plot

bench-against: setup
	@scripts/against "$(REV)"

install: setup
	@scripts/install

setup:
	@scripts/setup

setup-test:
	@scripts/setup test

setup-bench:
	@scripts/setup bench

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

clean: stop
	cargo clean
