# snowflake_pg: `make run` shows it, `make test` tests it; both set up what they need.

# Major version of PostgreSQL to build for: 15, 16, 17, 18, or all of them in turn. Where only PG_CONFIG is given, its version.
PG ?= $(or $(if $(PG_CONFIG),$(shell $(PG_CONFIG) --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')),15)
# Versions with which `make test` tests what depends on PostgreSQL, after every test with PG.
ALSO ?=
export PG ALSO
export PGRX_HOME := $(CURDIR)/target/pgrx
export CARGO_TARGET_DIR := $(CURDIR)/target
# One line at the end says how it went, also when make runs make.
MAKEFLAGS += --no-print-directory
# Where rustup puts cargo, also for a shell that was not told.
export PATH := $(CURDIR)/target/tools/bin:$(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
# What the tools below print is read by people and by tests.
export NO_COLOR := 1

.PHONY: help run stop test soak bench bench-plot bench-against all install package lint clean
.PHONY: setup setup-package setup-test setup-bench

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
	@echo "make package  a Debian package and a tar for PostgreSQL $(PG), into target/packages"
	@echo "make lint     formatting and clippy"
	@echo "Settings: PG=15 (major version: 15, 16, 17, 18 or all), PG_CONFIG=/path/to/pg_config; of make test also"
	@echo "ALSO=\"16 17 18\" (versions with which what depends on PostgreSQL is tested, too)"

test:
	@scripts/test

ifeq ($(PG),all)
run stop soak all install package setup:
	@for version in 15 16 17 18; do $(MAKE) PG=$$version $@ || exit; done
else
run: install
	@cargo run --quiet -p bench --bin demo

stop:
	@cargo run --quiet -p bench --bin demo stop

soak: setup-test install
	@scripts/soak $(or $(SECONDS),3600)

# With `install` what the client of PGXN asks for.
all: setup
	@scripts/build

install: setup
	@scripts/install

package: setup-package
	@scripts/package

setup:
	@scripts/setup
endif

bench: install setup-bench
	@cargo run --quiet --profile bench -p bench --bin measure -- $(PART)

bench-plot:
	@cargo run --quiet --profile bench -p bench --bin plot

bench-against: setup
	@scripts/against "$(REV)"

setup-package:
	@scripts/setup package

setup-test:
	@scripts/setup test

setup-bench:
	@scripts/setup bench

# With the version that is the default feature.
lint:
	@PG=15 PG_CONFIG= scripts/setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

clean: stop
	cargo clean
