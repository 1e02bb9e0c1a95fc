#!/bin/sh
# SPDX-License-Identifier: MIT
# The functions that swin.h declares, that swin.map names and that the library exports are the same, and swin.h says of
# each from which threads it may be called.
#
#   symbols.sh SWIN_H SWIN_MAP LIBRARY
set -eu

header=$1 map=$2 library=$3
LC_ALL=C
export LC_ALL
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Line breaks away; then the word before the bracket of whatever follows SWIN_API.
sed '/^#/d' "$header" | tr '\n' ' ' |
    grep -o 'SWIN_API [^;(]*(' | grep -o '[A-Za-z0-9_]*($' | tr -d '(' | sort >"$work/header"
sed -n '/global:/,/local:/s/^ *\([A-Za-z0-9_*?]*\);.*/\1/p' "$map" | sort >"$work/map"
nm --dynamic --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$work/library"

count=$(wc -l <"$work/header")
test "$count" -gt 0 || { echo "no SWIN_API function found in $header" >&2; exit 1; }
diff -u "$work/header" "$work/map" >&2 || { echo "$header (-) and $map (+) differ" >&2; exit 1; }
diff -u "$work/header" "$work/library" >&2 || { echo "$header (-) and $library (+) differ" >&2; exit 1; }
if unprefixed=$(grep -v '^swin_' "$work/library"); then
    echo "exported without the prefix swin_: $unprefixed" >&2
    exit 1
fi
# The comment that ends right before a declaration is the declaration's.
silent=$(awk '/^\/\*/ { said = 0 } /Thread-safety: / { said = 1 } /^SWIN_API/ { if (!said) print; said = 0 }' "$header")
test -z "$silent" || { echo "$header says nothing about threads of: $silent" >&2; exit 1; }
echo "$count functions"
