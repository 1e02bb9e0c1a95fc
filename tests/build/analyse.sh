#!/bin/sh
# SPDX-License-Identifier: MIT
# cppcheck and clang-tidy over the library and the tool; any finding fails.
#
#   analyse.sh BUILD_DIRECTORY [FILE...]      from the top of the tree; FILE: only these, else all
set -eu

build=$1
shift
if [ $# = 0 ]; then
    # shellcheck disable=SC2046
    set -- $(find lib bindings -name '*.c' | sort)
fi
log=$build/analysis.log
failed=0

# The oneDNN generation that this build does not use cannot be read without its headers.
files=
for file; do
    if grep -q "/$file\"" "$build/compile_commands.json"; then
        files="$files $file"
    else
        echo "not in this build: $file"
    fi
done

echo 'cppcheck'
# shellcheck disable=SC2086
cppcheck --quiet --std=c11 --language=c --enable=warning,style,performance,portability --inline-suppr \
    --suppressions-list=tests/build/cppcheck.txt --error-exitcode=1 -j "$(nproc)" --library=posix \
    -DSW_ISA=0 -DSW_ISA_NAME=plain -D_GNU_SOURCE -D__BYTE_ORDER__=1234 -D__ORDER_LITTLE_ENDIAN__=1234 -D__GNUC__=12 \
    -D__x86_64__=1 -Iinclude -Ilib -Ibindings/cli \
    --template='{file}:{line}: {severity}: {message} [{id}]' $files || failed=1

echo 'clang-tidy'
# Kernels that are compiled once per instruction set are read once, as plain C. One file at a time: clang 14 carries
# what it thinks of va_list from one file to the next.
for file in $files; do
    case $file in
    lib/kernels/amx* | lib/kernels/*_avx512.c | lib/kernels/dispatch.c) echo "clang-tidy --quiet -p $build $file" ;;
    lib/kernels/*) echo "clang-tidy --quiet $file -- -std=c11 -D_GNU_SOURCE -DSW_ISA=0 -DSW_ISA_NAME=plain -Iinclude" ;;
    *) echo "clang-tidy --quiet -p $build $file" ;;
    esac
done | xargs -P "$(nproc)" -I COMMAND sh -c COMMAND >"$log" 2>&1 || failed=1
# The way that leads to each finding stays in the log.
grep -E ': (error|warning): ' "$log" | sed 's,^.*/\(\(lib\|include\|bindings\)/\),\1,' | sort -u
test "$failed" = 0 || echo "all that clang-tidy said: $log"
exit "$failed"
