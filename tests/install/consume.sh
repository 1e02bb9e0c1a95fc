#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs a build of libswin into an empty directory, then builds and runs a program outside the tree against what was
# installed, in the way that WAY names:
#
#   consume.sh c|cxx|cmake|meson BUILD_DIRECTORY SOURCES COMPILER...     SOURCES: this directory
#   consume.sh subproject        SOURCE_DIRECTORY SOURCES COMPILER...    libswin as a subproject of another project
#
# A tool that is not there makes the test a skipped one (77).
set -eu

way=$1 swin=$2 sources=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
meson=${MESONINTROSPECT:-meson introspect}
meson=${meson% introspect}

need()
{
    command -v "$1" >/dev/null 2>&1 || {
        echo "needs $1"
        exit 77
    }
}

if [ "$way" != subproject ]; then
    $meson install -C "$swin" --no-rebuild --destdir "$work/root" >"$work/install.log" 2>&1 || {
        cat "$work/install.log" >&2
        exit 1
    }
    pc=$(find "$work/root" -name swin.pc)
    library=$(find "$work/root" -name libswin.so)
    prefix=$(dirname "$(find "$work/root" -path '*/include/swin/swin.h')")/../..
    LD_LIBRARY_PATH=$(dirname "$library")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    # Nothing that libswin itself needs is asked of its users: only its own .pc file can be seen.
    PKG_CONFIG_LIBDIR=$(dirname "$pc")
    PKG_CONFIG_SYSROOT_DIR=$work/root
    export PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
    unset PKG_CONFIG_PATH
fi
mkdir "$work/consumer"
cd "$work/consumer"
cp "$sources/client.c" detector.c
# How README.md says it is done.
readme()
{
    sh "$sources/../readme/block.sh" "$sources/../../README.md" "$@"
}

case $way in
c)
    need pkg-config
    # shellcheck disable=SC2046
    "$@" -std=c99 -pedantic-errors -Wall -Wextra -Werror $(pkg-config --cflags swin) detector.c -o client \
        $(pkg-config --libs swin)
    ./client
    pkg-config --exact-version="$(./client | sed 's/libswin \([^:]*\):.*/\1/')" swin
    eval "$(readme sh 4)"
    ./detector
    ;;
cxx)
    need pkg-config
    # shellcheck disable=SC2046
    "$@" -std=c++11 -pedantic-errors -Wall -Wextra -Werror $(pkg-config --cflags swin) "$sources/client.cpp" -o client \
        $(pkg-config --libs swin)
    ./client
    ;;
cmake)
    need cmake
    cp "$sources/client.cpp" "$sources/CMakeLists.txt" .
    readme cmake 1 >readme.cmake
    unset PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
    CC=$1 cmake -S . -B build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release >cmake.log 2>&1 &&
        cmake --build build >>cmake.log 2>&1 || {
        cat cmake.log >&2
        exit 1
    }
    ./build/detector
    ./build/detector_cxx
    # A version that is not there is refused.
    sed -i 's/find_package(swin [0-9.]*/find_package(swin 99.0/' readme.cmake
    if cmake -S . -B refused -DCMAKE_PREFIX_PATH="$prefix" >refused.log 2>&1; then
        echo 'find_package(swin 99.0) succeeded' >&2
        exit 1
    fi
    grep -q 'swinConfig.cmake, version:' refused.log || {
        cat refused.log >&2
        exit 1
    }
    ;;
meson | subproject)
    printf '%s\n' "project('consumer', 'c')" "$(readme meson 1)" >meson.build
    options=
    if [ "$way" = subproject ]; then
        mkdir subprojects
        ln -s "$swin" subprojects/swin
        options='--wrap-mode=forcefallback -Dbuildtype=debug'
    fi
    # shellcheck disable=SC2086
    CC=$* $meson setup build $options >meson.log 2>&1 && $meson compile -C build detector >>meson.log 2>&1 || {
        cat meson.log >&2
        exit 1
    }
    ./build/detector
    ;;
*)
    echo "unknown way: $way" >&2
    exit 2
    ;;
esac
