# Shared by the scripts beside it: say what happens, find the tools. Sourced, not run.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What make was told is in the environment; as its flags it would reach every make that is called here, whatever for.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL

# Nor does what the caller tells programs of PostgreSQL, or any program, except which PostgreSQL is meant. The tests'
# harness has the same lists.
for variable in $(compgen -e); do
    case $variable in
        PG | PG_CONFIG | PGRX_HOME) ;;
        PG* | PSQL* | LC_* | LANG | LANGUAGE | TZ) unset "$variable" ;;
    esac
done

# The major versions of PostgreSQL that are supported.
VERSIONS="15 16 17 18"
PG=${PG:-15}
PGRX_VERSION=0.18.1
VERSION=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
export PGRX_HOME=${PGRX_HOME:-$PWD/target/pgrx}
export CARGO_TARGET_DIR=$PWD/target
export PATH="$PWD/target/tools/bin:${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

say() { printf '%s\n' "==> $*" >&2; }
die() { printf '%s\n' "error: $*" >&2; exit 1; }

# Runs a command as root: directly, or through sudo where there is one.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else die "this step needs root, and there is no sudo: $*"; fi
}

# Prints the pg_config of the major version asked for: the one PG_CONFIG names, else Debian's, else the one that
# scripts/setup unpacked, else the first in PATH.
find_pg_config() {
    local candidate candidates=("${PG_CONFIG:-}")
    [ -n "${PG_CONFIG:-}" ] || candidates=("/usr/lib/postgresql/$PG/bin/pg_config" "$PWD/target/postgresql/$PG"/*/*/bin/pg_config
        "$(command -v pg_config || true)")
    for candidate in "${candidates[@]}"; do
        if [ -x "$candidate" ] && "$candidate" --version | grep -q "^PostgreSQL ${PG}[^0-9]"; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

# Keeps other scripts from building until this one ends: all builds use the same directories.
build_alone() {
    [ -z "${SNOWFLAKE_BUILDING:-}" ] || return 0
    export SNOWFLAKE_BUILDING=$$
    mkdir -p target
    exec {building}>target/building.lock
    if command -v flock >/dev/null; then flock "$building"; fi
}

# Lets them build again.
built() {
    exec {building}>&-
    unset SNOWFLAKE_BUILDING
}

# Runs a long step quietly; on failure prints what it said and stops.
quietly() {
    local log
    log=$(mktemp)
    # In a subshell, so that a step that gives up does not take its log along.
    if ! ("$@") >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        die "failed: $*"
    fi
    rm -f "$log"
}
