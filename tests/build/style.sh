#!/bin/sh
# SPDX-License-Identifier: MIT
# What every text file keeps: a licence line on top, lines of 120 columns at most, no tabs, no blanks at line ends, one
# newline at the end; and nothing lies at the top level that does not belong there.
#
#   style.sh      from the top of the tree
set -eu
LC_ALL=C.UTF-8
export LC_ALL

if git -c safe.directory='*' rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    files=$(git -c safe.directory='*' ls-files)
else
    files=$(find . -type f -not -path './.git/*' -not -path './build*' -not -path './maps/*' | sed 's,^\./,,')
fi

faults=$(mktemp)
trap 'rm -f "$faults"' EXIT
fault()
{
    echo "$*" >>"$faults"
}

for file in $files; do
    case $file in
    lib/* | include/* | bindings/* | tests/* | bench/* | .ci/*) ;;
    meson.build | README.md | LICENSE | .gitignore | .clang-format | .clang-tidy | .editorconfig) ;;
    *) fault "$file: does not belong at the top level" ;;
    esac

    case $file in
    *.c | *.h | *.hpp | *.cpp | *.py | *.sh | *.in | .ci/run | */CMakeLists.txt)
        # An interpreter line may come first.
        head -n 2 "$file" | grep -q 'SPDX-License-Identifier: MIT' || fault "$file: no SPDX line on top"
        ;;
    */meson.build | meson.build | *.md | *.toml | *.map | .clang* | .editorconfig) ;;
    *) continue ;;
    esac

    widest=120
    case $file in
    *.md) widest=100000 ;;
    esac
    awk -v file="$file" -v columns="$widest" '
        length($0) > columns { print file ":" FNR ": " length($0) " columns" }
        /\t/ { print file ":" FNR ": a tab" }
        /[ \t\r]$/ { print file ":" FNR ": a blank at the end of the line" }
    ' "$file" >>"$faults"
    test -z "$(tail -c 1 "$file")" || fault "$file: no newline at the end"
    test -n "$(tail -n 1 "$file")" || fault "$file: an empty line at the end"
done

cat "$faults" >&2
test ! -s "$faults"
