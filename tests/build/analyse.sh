#!/bin/sh
# SPDX-License-Identifier: MIT
# cppcheck and clang-tidy over the library and the tool; any finding fails.
#
#   analyse.sh BUILD_DIRECTORY [FILE...]      from the top of the tree; FILE: only these, else all
set -eu

build=$1
shift
if [ $# = 0 ]; then
    set -- $(find lib bindings -name '*.c' | sort)
fi
cpus=$(nproc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# The oneDNN generation that this build does not use cannot be read without its headers. Kernels are read once, as
# plain C.
files=
for file; do
    name=$(basename "$file")
    if grep -q "[/ ]$name\"" "$build/compile_commands.json"; then
        files="$files $file"
    else
        echo "not in this build: $file"
    fi
done

echo 'cppcheck'
cppcheck --quiet --std=c11 --language=c --enable=warning,style,performance,portability --inline-suppr \
    --suppressions-list=tests/build/cppcheck.txt --error-exitcode=1 -j "$cpus" --library=posix \
    -DSW_ISA=0 -DSW_ISA_NAME=plain -D_GNU_SOURCE -D__BYTE_ORDER__=1234 -D__ORDER_LITTLE_ENDIAN__=1234 -D__GNUC__=12 \
    -D__x86_64__=1 -Iinclude -Ilib -Ibindings/cli --template='{file}:{line}: {severity}: {message} [{id}]' \
    $files || failed=1

echo 'clang-tidy'
# shellcheck disable=SC2086
printf '%s\n' $files | xargs -P "$cpus" -n 4 clang-tidy -p "$build" --quiet \
    >"$build/clang-tidy.log" 2>"$work/log" || failed=1
# The way that leads to each finding stays in the log.
grep -E ': (error|warning): ' "$build/clang-tidy.log" "$work/log" -h | sed "s,^.*/\(\(lib\|include\|bindings\)/\),\1," |
    sort -u
test "$failed" = 0 || echo "the whole of clang-tidy's words: $build/clang-tidy.log"
exit "$failed"
