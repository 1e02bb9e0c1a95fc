#!/bin/sh
# SPDX-License-Identifier: MIT
# Lines and branches of the library that the suite reaches: 95 % of lib/weights and 90 % of lib/ are required.
#
#   coverage.sh BUILD_DIRECTORY [ARGUMENTS OF MESON TEST...]      from the top of the tree; needs gcovr
#
# Branches are those of the source: what a compiler adds, and the failure branches of assert(), do not count. The tables
# by file, with the lines not reached, are BUILD_DIRECTORY/coverage-*.txt.
set -eu

if [ $# = 0 ]; then
    sed -n '3,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
fi
build=$1
shift
if [ ! -e "$build/build.ninja" ]; then
    # Without atomic counters several threads make them negative, and gcovr leaves out such branches.
    CC=gcc meson setup "$build" -Db_coverage=true -Doptimization=1 -Ddebug=true -Db_ndebug=true \
        -Dc_args=-fprofile-update=atomic >/dev/null
fi
meson compile -C "$build" >"$build/coverage-build.log"
find "$build" -name '*.gcda' -delete
# Programs that may not write files cannot write their counters either: those of the Python suite.
meson test -C "$build" --no-rebuild --timeout-multiplier 10 --no-suite install --no-suite readme --no-suite headers \
    --no-suite python --no-suite soak "$@" >"$build/coverage-test.log" || {
    grep -E 'FAIL|TIMEOUT' "$build/coverage-test.log" >&2
    exit 1
}

# name, filter, percent of lines, percent of branches.
measure()
{
    for kind in lines branches; do
        option='' least=$3
        test "$kind" = lines || option=--branches least=$4
        # shellcheck disable=SC2086
        gcovr --root . --object-directory "$build" --filter "$2" --exclude-unreachable-branches \
            --exclude-throw-branches --print-summary $option >"$build/coverage-$1-$kind.txt"
        percent=$(sed -n "s/^$kind: \([0-9.]*\)%.*/\1/p" "$build/coverage-$1-$kind.txt")
        echo "$1: $percent % of $kind, $least % required"
        awk -v percent="$percent" -v least="$least" 'BEGIN { exit !(percent >= least) }' || failed=1
    done
}

failed=0
measure weights 'lib/weights/' 95 95
measure lib 'lib/' 90 90
exit "$failed"
