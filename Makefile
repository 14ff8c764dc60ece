# `make run` demonstrates snowflake_pg, and `make test` tests it. Both install what they need.

VERSIONS := $(shell sed -n 's/^VERSIONS="\(.*\)"$$/\1/p' scripts/common.sh)
# Major version of PostgreSQL to build for, or "all" for each of VERSIONS in turn. If only PG_CONFIG is set, its version is used.
PG ?= $(or $(if $(PG_CONFIG),$(shell $(PG_CONFIG) --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')),15)
# Versions on which `make test` also runs the tests that depend on PostgreSQL, after the tests on PG.
ALSO ?=
export PG ALSO
export PGRX_HOME := $(CURDIR)/target/pgrx
export CARGO_TARGET_DIR := $(CURDIR)/target
# The last line shows the result, also if make runs make.
MAKEFLAGS += --no-print-directory
# Adds the directory into which rustup installs cargo, because PATH may not contain it yet.
export PATH := $(CURDIR)/target/tools/bin:$(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
# People and tests read the output of the tools below.
export NO_COLOR := 1

.PHONY: help run stop check test test-controls test-packages test-engines test-clients ci soak bench bench-plot bench-against \
	bench-starvation
.PHONY: all install installcheck package rpm release lint fuzz clean
.PHONY: run-fleet decoder docs setup setup-package setup-test setup-bench

help:
	@echo "make run      build, install, start a private server, insert and decode, print how to connect"
	@echo "make run-fleet   start a registry and three servers that get their worker IDs from it, insert, copy a server"
	@echo "make stop     stop the servers that make run and make run-fleet started"
	@echo "make check    formatting, clippy, the core and the SQL surface: one to three minutes"
	@echo "make test     every test except the negative controls, packages, engines and clients: ten minutes"
	@echo "make test-controls   the negative controls: tests that show that other tests detect a fault"
	@echo "make test-packages   builds the packages, and installs them in new Debian systems"
	@echo "make test-engines   tests with Patroni, pg_auto_failover, pglogical, pgBackRest and other programs: five minutes"
	@echo "make test-clients   tests with drivers and ORMs for six languages, from their registries: four minutes"
	@echo "make ci       all of these, and the tests that depend on PostgreSQL with 16, 17 and 18"
	@echo "make docs     build a site from the pages in target/site"
	@echo "make soak     faults in random order for SECONDS=3600, and ten minutes of idling"
	@echo "make bench    compare with sequences and UUIDs (more than an hour); PART=cost, conceal, crates, storage, copy, oltp,"
	@echo "              contention, wire, service, segments, serials, fleet, portable or failovers runs one part; writes to"
	@echo "              bench/results, or to target/bench for a short run with ROUNDS=1 or SCALE=100"
	@echo "make bench-plot   plot the results of make bench, next to them"
	@echo "make bench-against REV=..  compare the cost of an ID with another revision, or with REV=--uncounted: this one without counts"
	@echo "make bench-starvation REV=..  how long one ID takes while other sessions reserve blocks, compared with another revision"
	@echo "make install  build and install the extension for PostgreSQL $(PG)"
	@echo "make installcheck   run the SQL tests on the running server that PGHOST and PGPORT select"
	@echo "make package  build a Debian package and a tar archive for PostgreSQL $(PG) in target/packages"
	@echo "make rpm      build an rpm for PostgreSQL $(PG) in target/packages"
	@echo "make release  build the files of a release in target/release-files; DRAFT=1 if CHANGELOG.md has no date yet"
	@echo "make decoder  build the decoder page, one HTML file that works offline, and print where it is"
	@echo "make lint     check formatting, clippy, spelling and the length of lines; PG=all: clippy with all versions"
	@echo "make fuzz     fuzz each parser of crates/flake for SECONDS=60"
	@echo "Settings: PG=15 (major version: $(VERSIONS) or all), PG_CONFIG=/path/to/pg_config; for make test also"
	@echo "ALSO=\"$(filter-out 15,$(VERSIONS))\" (more versions on which to run the tests that depend on PostgreSQL)"

check:
	@scripts/test lint core surface

test:
	@scripts/test core interleavings test

test-controls:
	@THOROUGH=1 scripts/test controls

test-packages:
	@scripts/test packages

test-engines:
	@scripts/test engines

test-clients:
	@scripts/test clients

ci:
	@THOROUGH=1 FLEET_WORLDS=1000000 ALSO='$(filter-out 15,$(VERSIONS))' scripts/test lint core interleavings servers builds engines clients

docs:
	@scripts/docs

ifeq ($(PG),all)
run run-fleet stop soak all install package rpm setup:
	@for version in $(VERSIONS); do $(MAKE) PG=$$version $@ || exit; done
else
run: install
	@cargo run --quiet -p demo

run-fleet: install
	@cargo run --quiet -p demo -- run-fleet

stop:
	@cargo run --quiet -p demo -- stop

soak: setup-test install
	@scripts/soak $(or $(SECONDS),3600)

# The PGXN client calls `all` and `install`.
all: setup
	@scripts/build

install: setup
	@scripts/install

installcheck:
	@scripts/installcheck

package: setup-package
	@scripts/package

rpm: setup-package
	@scripts/rpm

setup:
	@scripts/setup
endif

release:
	@scripts/release

decoder:
	@scripts/decoder

bench: install setup-bench
	@cargo run --quiet --profile bench -p bench --bin measure -- $(PART)

bench-plot:
	@cargo run --quiet --profile bench -p bench --bin plot

bench-against: setup
	@scripts/bench-against "$(REV)"

bench-starvation: setup
	@scripts/bench-against "$(REV)" starvation

setup-package:
	@scripts/setup package

setup-test:
	@scripts/setup test

setup-bench:
	@scripts/setup bench

lint:
	@scripts/lint

fuzz:
	@scripts/fuzz $(or $(SECONDS),60)

clean: stop
	cargo clean
