#!/bin/sh
# SPDX-License-Identifier: MIT
# The examples of README.md, taken from it and run.
#
#   examples.sh README c|cxx|python|tool|map CHECKPOINT PROGRAM...
#
# c, cxx: PROGRAM is the compiler with what it needs to find the library; python: the interpreter; tool: swin-dump.
set -eu

readme=$1 way=$2 checkpoint=$3
shift 3
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
block()
{
    sh "$here/block.sh" "$readme" "$@"
}
fail()
{
    echo "$*" >&2
    exit 1
}

case $way in
c)
    block c 1 >"$work/detector.c"
    lines=$(wc -l <"$work/detector.c")
    test "$lines" -le 40 || fail "the C example has $lines lines"
    "$@" -std=c11 -pedantic-errors -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror -x c "$work/detector.c" \
        -x none -o "$work/detector" $LINK
    "$work/detector" "$checkpoint" | tee "$work/out"
    test "$(grep -c '^c[2-5]: [0-9]* x [0-9]* x [0-9]*, stride [0-9]*$' "$work/out")" = 4 || fail 'expected four levels'
    if (cd "$work" && ./detector) 2>"$work/err"; then
        fail 'it succeeds without a file'
    fi
    grep -q 'swin.safetensors' "$work/err" || fail 'the failure does not name the file'

    # The examples in the header's own comments, with what they find there.
    cat >"$work/header.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <swin/swin.h>
static int fail(const swin_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    return 1;
}
int main(int argc, char **argv)
{
    static unsigned char bytes[3 * 160 * 240];
    const int height = 160, width = 240;
    swin_error err;
    swin_model *model;
    swin_session *session;
    if (argc < 2 || swin_model_open(argv[1], NULL, &model, &err) != SWIN_OK ||
        swin_session_create(model, NULL, &session, &err) != SWIN_OK)
        return 1;
    swin_image image;
    swin_image_init(&image, sizeof image);
    image.data = bytes;
    image.height = height;
    image.width = width;
END
    header=$(dirname "$readme")/include/swin/swin.h
    sed -n '/^ \*     swin_selftest_result r;/,/^ \*         ;/s/^ \*     /    /p' "$header" >"$work/comment"
    grep -q 'swin_selftest(i' "$work/comment" || fail 'no self-test found in swin.h'
    cat "$work/comment" >>"$work/header.c"
    printf '    if (r.kernel != NULL)\n        return fail(&err);\n' >>"$work/header.c"
    sed -n '/^ \* Looking inside/,/^ \*\/$/s/^ \*     /    /p' "$header" >"$work/comment"
    grep -q 'swin_session_attention' "$work/comment" || fail 'no example found in swin.h'
    # The checkpoint of the tests is a small one.
    sed 's/stage = 2/stage = 1/; s/block = 5/block = 0/' "$work/comment" >>"$work/header.c"
    cat >>"$work/header.c" <<'END'
    free(attention.weights);
    swin_session_destroy(session);
    swin_model_destroy(model);
    return 0;
}
END
    "$@" -std=c11 -pedantic-errors -Wall -Wextra -Wconversion -Wno-sign-conversion -Werror -x c "$work/header.c" \
        -x none -o "$work/header" $LINK
    "$work/header" "$checkpoint"
    ;;
cxx)
    block cpp 1 >"$work/detector.cpp"
    "$@" -std=c++11 -pedantic-errors -Wall -Wextra -Werror -x c++ "$work/detector.cpp" -x none -o "$work/detector" $LINK
    "$work/detector" "$checkpoint" | tee "$work/out"
    test "$(grep -c '^c[2-5]: [0-9]* x [0-9]* x [0-9]*$' "$work/out")" = 4 || fail 'expected four levels'
    if (cd "$work" && ./detector) 2>"$work/err"; then
        fail 'it succeeds without a file'
    fi
    grep -q 'swin.safetensors' "$work/err" || fail 'the failure does not name the file'

    # The line about OpenCV is the header's own example, with its file and its matrix.
    grep -q 'swin::image::bgr8(mat.data, mat.rows, mat.cols, mat.step)' "$readme" || fail 'nothing about cv::Mat'

    cat >"$work/header.cpp" <<'END'
#include <cstdio>
#include <swin/swin.hpp>
int main()
{
    static unsigned char bytes[40 * 200];
    const struct { unsigned char *data; int rows, cols; std::size_t step; } mat = {bytes, 40, 60, 200};
END
    sed -n '/^ \*\/$/q; s/^ \*     //p' "$(dirname "$readme")/include/swin/swin.hpp" >"$work/comment"
    grep -q 'session.run' "$work/comment" || fail 'no example found in swin.hpp'
    cat "$work/comment" >>"$work/header.cpp"
    printf '    return c5 == nullptr;\n}\n' >>"$work/header.cpp"
    "$@" -std=c++11 -pedantic-errors -Wall -Wextra -Werror -x c++ "$work/header.cpp" -x none -o "$work/header" $LINK
    ln -s "$checkpoint" "$work/swin_tiny.safetensors"
    (cd "$work" && ./header)
    ;;
python)
    ln -s "$checkpoint" "$work/swin_tiny.safetensors"
    printf 'import numpy\nimage = numpy.zeros((60, 80, 3), numpy.uint8)\n' >"$work/example.py"
    block python 1 >>"$work/example.py"
    printf 'assert [m.shape[2:] for m in maps] == [(15, 20), (8, 10), (4, 5), (2, 3)]\n' >>"$work/example.py"
    (cd "$work" && "$@" example.py)

    # As typed at the top of the tree, with this build and this interpreter for the ones it names.
    grep '^PYTHONPATH=.* python3 -m libswin' "$readme" | sed "s,build/lib,$LIBSWIN_PATH,; s,python3,$1," >"$work/line"
    test "$(wc -l <"$work/line")" = 1 || fail 'expected one line with PYTHONPATH'
    (cd "$(dirname "$readme")" && env -u PYTHONPATH -u LIBSWIN_PATH sh "$work/line") | grep -q convert ||
        fail 'the line with PYTHONPATH does not show the commands'
    ;;
tool)
    # Before four blanks stands what is typed, behind them what it does.
    sed -n 's/^\(swin-dump .*\)    *[a-z].*$/\1/p' "$readme" | sed 's/ *$//' >"$work/commands"
    test "$(wc -l <"$work/commands")" -ge 5 || fail 'expected five commands'
    ln -s "$checkpoint" "$work/swin_tiny.safetensors"
    ln -s "$(cd "$(dirname "$readme")" && pwd)/bindings/cli/photo.png" "$work/photo.png"
    mkdir "$work/photos"
    ln -s ../photo.png "$work/photos/photo.png"
    tool=$1
    cd "$work"
    "$tool" --quiet -w swin_tiny.safetensors --npy -o ref photo.png
    while read -r command; do
        echo "$command"
        # shellcheck disable=SC2086
        set -- $command
        shift
        "$tool" "$@" >out 2>&1 || {
            cat out >&2
            fail "failed: $command"
        }
    done <commands
    # What multiplies here is explained where it is libswin's own.
    for precision in f32 bf16; do
        "$tool" -w swin_tiny.safetensors --json -o engine --precision $precision photo.png >out
        name=$(sed -n 's/^engine .* \([^ ]*:[^ ]*\): .*/\1/p' out)
        echo "$precision: $name"
        case $name in
        swin:*) grep -q "^.$name. multiplies" "$readme" || fail "README.md does not explain $name" ;;
        '') fail 'no engine is named' ;;
        esac
    done
    test -s swin-dump/c5.png || fail 'no heatmap was written'
    test -s swin-dump/photo/c5.npy || fail 'no map was written'
    ;;
map)
    cd "$(dirname "$readme")"
    sed -n '/^## Map of the repository/,/^An image/s,^\([a-z][a-z/.]*\)  .*,\1,p' README.md >"$work/paths"
    test "$(wc -l <"$work/paths")" -ge 10 || fail 'no map found'
    # Links and pictures too.
    grep -o '](\([^)]*\))' README.md | sed 's/](\(.*\))/\1/' >>"$work/paths"
    while read -r path; do
        test -e "$path" || fail "README.md names $path, which is not there"
    done <"$work/paths"
    for directory in lib/*/ bindings/*/; do
        grep -q "^$directory" "$work/paths" || fail "the map lacks $directory"
    done
    # Each of the two commands is one line, and brings its packages along.
    for n in 1 2; do
        test "$(block sh $n | wc -l)" = 1 || fail "command $n is not one line"
        block sh $n | grep -q '^apt-get update && apt-get install -y ' || fail "command $n does not begin with apt-get"
    done
    ;;
*) fail "unknown way: $way" ;;
esac
