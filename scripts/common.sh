# Functions and settings shared by the scripts in this directory: messages, and finding the tools. Sourced, not run.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The variables of make are in the environment. Without this, its flags would apply to every make that these scripts call.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL

# Removes settings of the caller for programs of PostgreSQL and other programs, except those that choose the PostgreSQL. The tests'
# harness has the same lists.
for variable in $(compgen -e); do
    case $variable in
        PG | PG_CONFIG | PGRX_HOME) ;;
        PG* | PSQL* | LC_* | LANG | LANGUAGE | TZ) unset "$variable" ;;
    esac
done

# Otherwise, a script that is ended by a signal would print the result of its last command in its last line.
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# The supported major versions of PostgreSQL.
VERSIONS="15 16 17 18"
PG=${PG:-15}
VERSION=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
export PGRX_HOME=${PGRX_HOME:-$PWD/target/pgrx}
export CARGO_TARGET_DIR=$PWD/target
export PATH="$PWD/target/tools/bin:${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

say() { printf '%s\n' "==> $*" >&2; }
die() { printf '%s\n' "error: $*" >&2; exit 1; }

# Runs a command as root: directly, or through sudo if it is installed.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else die "this step needs root, and there is no sudo: $*"; fi
}

# Prints the pg_config of the requested major version: the one that PG_CONFIG names, otherwise Debian's, otherwise the one that
# scripts/setup unpacked, otherwise the first in PATH.
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

# Writes the file in which the build of pgrx looks for the headers of PostgreSQL.
tell_pgrx() {
    local pg_config others time=now configuration=$PGRX_HOME/config.toml
    pg_config=$(find_pg_config) || die "PostgreSQL $PG is not installed; name its pg_config with PG_CONFIG="
    if grep -qsxF "pg$PG = \"$pg_config\"" "$configuration"; then return; fi
    mkdir -p "$PGRX_HOME"
    # If the file is newer than what cargo has built with it, cargo builds all of that again. A line for one more version does not
    # concern the other versions.
    if [ -e "$configuration" ] && ! grep -q "^pg$PG = " "$configuration"; then time=$(stat --format=%y "$configuration"); fi
    others=$(grep -sv -e "^pg$PG = " -e '^\[configs\]' "$configuration" || true)
    printf '[configs]\npg%s = "%s"\n%s\n' "$PG" "$pg_config" "$others" >"$configuration"
    touch --date="$time" "$configuration"
}

# Prints the directory with the source of a crate, in vendor/ of the source package or where cargo keeps it: source_of NAME VERSION.
source_of() {
    local candidate
    for candidate in vendor/"$1-$2" vendor/"$1" "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$1-$2"; do
        if [ -d "$candidate" ]; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

# Prevents other scripts from building until this one ends, because all builds use the same directories.
build_alone() {
    [ -z "${SNOWFLAKE_BUILDING:-}" ] || return 0
    export SNOWFLAKE_BUILDING=$$
    mkdir -p target
    exec {building}>target/building.lock
    if command -v flock >/dev/null; then flock "$building"; fi
}

# Lets other scripts build again.
built() {
    exec {building}>&-
    unset SNOWFLAKE_BUILDING
}

# Runs a long step without output. If the step fails, prints its output and stops.
quietly() {
    local log writing reading failed=
    log=$(mktemp)
    # The file has no name while the step runs, so it is gone however this script ends. It is not a pipe, because a server that a
    # package starts would keep the pipe open, and this script would wait for the server's end.
    exec {writing}>"$log"
    exec {reading}<"$log"
    rm -f "$log"
    # In a subshell, so that a step that exits does not end this script before it prints the log.
    ("$@") >&"$writing" 2>&1 || failed=yes
    [ -z "$failed" ] || cat <&"$reading" >&2
    exec {writing}>&- {reading}<&-
    [ -z "$failed" ] || die "failed: $*"
}
