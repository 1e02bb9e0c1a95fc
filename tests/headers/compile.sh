#!/bin/sh
# SPDX-License-Identifier: MIT
# Compiles each public header alone, then twice in one file, in every language standard given, with warnings as errors.
#
#   compile.sh INCLUDE_DIRECTORY LANGUAGE STANDARDS HEADERS COMPILER...
#
# LANGUAGE is c or c++; STANDARDS and HEADERS are lists in one argument each. A standard that the compiler does not know
# is named and passed over; none left is a failure.
set -eu

include=$1 language=$2 standards=$3 headers=$4
shift 4

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $language in
c) file=$work/alone.c extra='-Wstrict-prototypes -Wmissing-prototypes -Wc++-compat -Wdeclaration-after-statement' ;;
c++) file=$work/alone.cpp extra='-Wold-style-cast -Wnon-virtual-dtor -Wzero-as-null-pointer-constant' ;;
esac
: >"$work/empty.c"
cp "$work/empty.c" "$work/empty.cpp"

compiled=0
compile() # standard, header, flags that only this case has
{
    standard=$1 header=$2
    shift 2
    "$@" -x "$language" "-std=$standard" -pedantic-errors -Wall -Wextra -Wshadow -Wconversion -Wundef -Werror $extra \
        "-I$include" -fsyntax-only "$file" || {
        echo "$header does not compile as $standard: $*" >&2
        exit 1
    }
    compiled=$((compiled + 1))
}

for standard in $standards; do
    if ! "$@" -x "$language" "-std=$standard" -fsyntax-only "${file%/*}/empty.${file##*.}" 2>/dev/null; then
        echo "passed over: $1 does not know -std=$standard"
        continue
    fi
    for header in $headers; do
        # A file with nothing but preprocessor lines would not be C.
        printf '#include <%s>\n#include <%s>\nint declaration(void);\n' "$header" "$header" >"$file"
        compile "$standard" "$header" "$@"
        case $header in
        *.hpp)
            compile "$standard" "$header" "$@" -fno-exceptions -fno-rtti
            compile "$standard" "$header" "$@" -DSWIN_HPP_EXCEPTIONS
            ;;
        esac
    done
done
echo "$compiled compilations"
test "$compiled" -gt 0
