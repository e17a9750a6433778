#!/bin/sh
# Shows that verifying takes the same number of instructions wherever the presented signature is wrong, whichever of
# several signatures is the good one, and whichever of several secrets made it. The controls do what this crate does
# not, and must be seen to differ: a check that misses them would prove nothing.
#
# callgrind counts instructions, so the result does not depend on the machine's load. It runs the portable SHA-256;
# the comparison is the same code either way.
#
# Needs valgrind and cargo. Exit status: 0 as it should be, 1 not, 2 the check could not run.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
command -v valgrind >/dev/null || { echo "constant-time.sh: valgrind is not installed" >&2; exit 2; }

# callgrind finds the functions by their names.
program=$(CARGO_PROFILE_RELEASE_STRIP=none cargo build --release --quiet --manifest-path "$here/Cargo.toml" --example constant_time \
    --message-format json | sed -n 's/.*"executable":"\([^"]*constant_time\)".*/\1/p')
[ -n "$program" ] || { echo "constant-time.sh: the example was not built" >&2; exit 2; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# counts SERIES FUNCTION: one instruction count a line, one line for each call but the first.
counts() {
    rm -f "$scratch"/out*
    valgrind --tool=callgrind --callgrind-out-file="$scratch/out" --toggle-collect="constant_time::$2" \
        --dump-after="constant_time::$2" "$program" "$1" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 2; }
    part=2
    while [ -f "$scratch/out.$part" ]; do
        sed -n 's/^summary: //p' "$scratch/out.$part"
        part=$((part + 1))
    done
}

# check SERIES FUNCTION CALLS same|different
check() {
    counts "$1" "$2" >"$scratch/counts"
    calls=$(wc -l <"$scratch/counts")
    distinct=$(sort -nu "$scratch/counts" | wc -l)
    range="$(sort -n "$scratch/counts" | head -n 1) to $(sort -n "$scratch/counts" | tail -n 1)"
    verdict=ok
    [ "$calls" -eq "$3" ] || verdict="FAILED: expected $3 calls"
    [ "$(sort -n "$scratch/counts" | head -n 1)" -gt 0 ] || verdict="FAILED: nothing was counted"
    case $4 in
    same) [ "$distinct" -eq 1 ] || verdict="FAILED: must not differ" ;;
    different) [ "$distinct" -gt 1 ] || verdict="FAILED: the control was not detected" ;;
    esac
    [ "$verdict" = ok ] || failed=1
    printf '%-24s %2d calls, %2d distinct counts, %s instructions: %s\n' "$1" "$calls" "$distinct" "$range" "$verdict"
}

check wrong-byte measured_verify 32 same
check which-signature measured_verify 16 same
check which-secret measured_verify 4 same
check control-slices measured_slices 32 different
check control-bytes measured_bytes 32 different
check control-which-signature measured_any 16 different
exit "$failed"
