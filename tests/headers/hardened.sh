#!/bin/sh
# SPDX-License-Identifier: MIT
# The library as linked: relocations read-only after start-up, no executable stack, no relocations in code, no search
# path of its own, stack protector and fortified C library calls in use, and nothing needed beyond what the README says.
#
#   hardened.sh LIBRARY FORTIFIED      FORTIFIED: yes, or no where the build switches it off (sanitizers, -O0)
set -eu

library=$1 fortified=$2
LC_ALL=C
export LC_ALL
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
    echo "$library: $*" >&2
    exit 1
}

readelf --wide --program-headers "$library" >"$work/segments"
readelf --wide --dynamic "$library" >"$work/dynamic"
nm --dynamic --undefined-only "$library" >"$work/undefined"

grep -q GNU_RELRO "$work/segments" || fail 'no RELRO segment'
grep -Eq 'FLAGS.*(BIND_NOW|NOW)' "$work/dynamic" || fail 'symbols are bound lazily'
grep -q GNU_STACK "$work/segments" || fail 'no GNU_STACK header'
! grep GNU_STACK "$work/segments" | grep -q 'RWE' || fail 'the stack is executable'
! grep -q 'LOAD.*RWE' "$work/segments" || fail 'a segment is writable and executable'
! grep -q TEXTREL "$work/dynamic" || fail 'relocations in code'
! grep -Eq 'RPATH|RUNPATH' "$work/dynamic" || fail "search path: $(grep -E 'RPATH|RUNPATH' "$work/dynamic")"
for function in abort exit _exit printf puts getenv setenv system; do
    ! grep -Eq " $function(@|\$)" "$work/undefined" || fail "calls $function()"
done
if [ "$fortified" = yes ]; then
    grep -q '__stack_chk_fail' "$work/undefined" || fail 'no stack protector'
    grep -Eq '__[a-z]+_chk(@|$)' "$work/undefined" || fail 'no fortified calls'
    needed=$(sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' "$work/dynamic" |
        grep -Ev '^(libc|libm|libdnnl|libgomp|libomp|libpthread|ld-linux[-a-z0-9_]*)\.so' || true)
    test -z "$needed" || fail "needs $needed"
fi
