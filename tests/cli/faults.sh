#!/bin/sh
# SPDX-License-Identifier: MIT
# Writing that fails or is cut off: whatever bears a final name is whole, and nothing else is left where the program
# could still clean up.
#
#   faults.sh SWIN_DUMP CHECKPOINT IMAGE
#
# Full and read-only file systems are small mounts of a namespace of its own, where the system allows that.
set -eu

if [ "${1:-}" = --mounted ]; then
    shift
    mounted=yes
else
    mounted=no
fi
program=$1 checkpoint=$2 image=$3

fail()
{
    echo "$*" >&2
    exit 1
}

# The files of a directory, hidden ones too.
listing()
{
    find "$1" -mindepth 1 | sort
}

if [ "$mounted" = yes ]; then
    place=$4 reference=$5
    for kilobytes in 4 64 200 800 1600; do
        mount -t tmpfs -o "size=${kilobytes}k" none "$place"
        code=0
        "$program" -q -w "$checkpoint" --npy --png --json -o "$place/new/out" "$image" 2>"$reference/err" || code=$?
        test "$code" = 1 || fail "on $kilobytes kB: exit code $code, expected 1"
        grep -q 'the disk is full' "$reference/err" || fail "on $kilobytes kB: $(cat "$reference/err")"
        test "$(wc -l <"$reference/err")" = 1 || fail "on $kilobytes kB: $(cat "$reference/err")"
        test -z "$(listing "$place")" || fail "on $kilobytes kB: left: $(listing "$place")"
        umount "$place"
    done
    # What was there before stays as it was.
    mount -t tmpfs -o size=3m none "$place"
    "$program" -q -w "$checkpoint" --npy -o "$place/out" --threads 1 --precision f32 "$image"
    head -c 4000000 /dev/zero >"$place/ballast" 2>/dev/null || true
    listing "$place" >"$reference/before"
    ! "$program" -q -w "$checkpoint" --npy -o "$place/out" --mean 1,1,1 "$image" 2>/dev/null ||
        fail 'wrote to a full disk'
    listing "$place" | cmp - "$reference/before" || fail 'a full disk: other files than before'
    for level in 2 3 4; do
        cmp "$place/out/c$level.npy" "$reference/c$level.npy" || fail 'a full disk: an older file was changed'
    done
    umount "$place"

    mount -t tmpfs -o ro none "$place"
    code=0
    "$program" -q -w "$checkpoint" --npy -o "$place/out" "$image" 2>"$reference/err" || code=$?
    test "$code" = 1 && grep -q 'read-only' "$reference/err" || fail "read-only: $code, $(cat "$reference/err")"
    umount "$place"
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/reference" "$work/place"
run='--npy --png --threads 1 --precision f32'
# shellcheck disable=SC2086
"$program" -q -w "$checkpoint" $run -o "$work/reference" "$image"

# Killed while it writes, and around that.
seen=0 kills=0 cut=0
for delay in 00 00 00 00 01 01 02 02 03 04 05 06 08 10 12 14 16 18 20 25 30 40; do
    rm -rf "$work/out"
    # shellcheck disable=SC2086
    "$program" -q -w "$checkpoint" $run -o "$work/out" "$image" &
    pid=$!
    until [ -d "$work/out" ] || ! kill -0 "$pid" 2>/dev/null; do
        sleep 0.01
    done
    sleep "0.$delay"
    if kill -9 "$pid" 2>/dev/null; then kills=$((kills + 1)); fi
    wait "$pid" 2>/dev/null || true
    for file in "$work/out"/*; do
        test -e "$file" || continue
        cmp "$file" "$work/reference/${file##*/}" || fail "killed after 0.$delay s: ${file##*/} is not whole"
        seen=$((seen + 1))
    done
    for file in "$work/out"/.*.tmp; do
        test ! -e "$file" || cut=$((cut + 1))
    done
done
echo "killed $kills times, $cut files cut off under other names, $seen under their final names, all whole"
test "$cut" -gt 0 || fail 'no file was ever cut off'

if unshare --mount --map-root-user true 2>/dev/null; then
    unshare --mount --map-root-user sh "$0" --mounted "$program" "$checkpoint" "$image" "$work/place" "$work/reference"
    echo 'full and read-only file systems: as they should be'
else
    echo 'passed over: no mounts may be made here'
fi
