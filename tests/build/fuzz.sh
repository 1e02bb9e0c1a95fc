#!/bin/sh
# SPDX-License-Identifier: MIT
# Fuzzes every target for a while under AddressSanitizer and UndefinedBehaviorSanitizer, one a CPU at a time.
#
#   fuzz.sh SECONDS [BUILD_DIRECTORY [TARGET...]]      from the top of the tree; needs clang; default: build-fuzz
#
# Each begins with its committed corpus and with the must-fail files that it can read. What is found new stays in
# BUILD_DIRECTORY/fuzz/TARGET; an input that ends a target stays in BUILD_DIRECTORY/fuzz/TARGET-crash-*, and the script
# ends with 1. To add such an input to what is tested for ever: put it into tests/fuzz/corpus/TARGET.
set -eu

if [ $# = 0 ]; then
    sed -n '3,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
fi
seconds=$1 build=${2:-build-fuzz}
shift "$(($# < 2 ? $# : 2))"
targets=${*:-safetensors json binder png npy options pickles}

# One that has numpy: Debian's.
python=python3
"$python" -c 'import numpy' 2>/dev/null || python=/usr/bin/python3
export python

programs=
for target in $targets; do
    test "$target" = pickles || programs="$programs tests/fuzz/fuzz_$target"
done
if [ -n "$programs" ]; then
    if [ ! -e "$build/build.ninja" ]; then
        CC=clang CXX=clang++ meson setup "$build" -Dbuildtype=debugoptimized -Doptimization=1 \
            -Db_sanitize=address,undefined -Db_lundef=false \
            -Dc_args='-fsanitize=fuzzer-no-link -fno-sanitize-recover=all' >/dev/null
    fi
    # shellcheck disable=SC2086
    ninja -C "$build" $programs >"$build/fuzz-build.log" || {
        tail -n 30 "$build/fuzz-build.log" >&2
        exit 1
    }
fi
build=$(cd "$build" && pwd)
mkdir -p "$build/fuzz/must-fail"
PYTHONDONTWRITEBYTECODE=1 "$python" tests/hostile/make.py "$build/fuzz/must-fail"

cat >"$build/fuzz/one.sh" <<'END'
target=$1 seconds=$2 build=$3
log=$build/fuzz/$target.log
if [ "$target" = pickles ]; then
    "$python" tests/fuzz/pickles.py "$seconds" >"$log" 2>&1
    status=$?
    tail -n 1 "$log"
    exit "$status"
fi
mkdir -p "$build/fuzz/$target"
more= length=4096
case $target in
safetensors | png)
    more=$build/fuzz/must-fail/$target
    length=20000
    ;;
binder) length=80 ;;
esac
dictionary=tests/fuzz/dictionaries/$target.txt
test -e "$dictionary" || dictionary=
UBSAN_OPTIONS=print_stacktrace=1 "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len="$length" \
    -timeout=120 -rss_limit_mb=3000 -print_final_stats=1 -artifact_prefix="$build/fuzz/$target-" \
    ${dictionary:+-dict="$dictionary"} "$build/fuzz/$target" "tests/fuzz/corpus/$target" $more >"$log" 2>&1
status=$?
executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
# libFuzzer may stop between the last execution and its statistics.
echo "$target: ${executions:-no} executions, $(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1) edges covered"
if [ "$status" != 0 ]; then
    grep -m 3 -E 'ERROR|SUMMARY|runtime error|not so:' "$log"
    echo "$target: failed, see $log"
fi
exit "$status"
END
# shellcheck disable=SC2086
printf '%s\n' $targets | xargs -P "$(nproc)" -I TARGET sh "$build/fuzz/one.sh" TARGET "$seconds" "$build"
