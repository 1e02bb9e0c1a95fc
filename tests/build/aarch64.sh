#!/bin/sh
# SPDX-License-Identifier: MIT
# Compiles libswin for 64-bit ARM and runs its suite in an emulator: plain C kernels, and the oneDNN that Debian has for
# that processor.
#
#   aarch64.sh ROOT [ARGUMENTS OF MESON TEST...]      from the top of the tree
#
# Needs gcc-aarch64-linux-gnu and qemu-user-static. ROOT becomes a directory with the libraries, taken from the mirror
# that this machine's apt uses; nothing outside it is changed. The build is in ROOT/build.
set -eu

if [ $# = 0 ]; then
    sed -n '3,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
fi
mkdir -p "$1"
root=$(cd "$1" && pwd)
shift
packages='libc6 libc6-dev linux-libc-dev libgcc-s1 libstdc++6 libgomp1 libdnnl2 libdnnl-dev libjansson4 libjansson-dev
    libpng16-16 libpng-dev zlib1g zlib1g-dev libcmocka0 libcmocka-dev'

if [ ! -e "$root/usr/include/oneapi/dnnl/dnnl.h" ]; then
    mkdir -p "$root/apt/lists/partial" "$root/apt/archives/partial" "$root/usr/lib"
    apt="-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::status=/dev/null
        -o Dir::State::lists=$root/apt/lists -o Dir::Cache=$root/apt -o APT::Sandbox::User=root"
    ln -sfn usr/lib "$root/lib"
    # shellcheck disable=SC2086
    apt-get $apt update
    # shellcheck disable=SC2086
    (cd "$root/apt/archives" && apt-get $apt download $packages)
    for package in "$root"/apt/archives/*.deb; do
        dpkg --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root"
    done
fi

cat >"$root/cross.txt" <<END
[binaries]
c = ['aarch64-linux-gnu-gcc', '--sysroot=$root']
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64-static', '-L', '$root']
[properties]
sys_root = '$root'
pkg_config_libdir = '$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'armv8'
endian = 'little'
END
# gcc 12.2 for this processor fails within itself on a test's loop at -O3.
test -e "$root/build/build.ninja" ||
    meson setup --cross-file "$root/cross.txt" -Dwerror=true -Doptimization=2 "$root/build"
meson compile -C "$root/build"
exec meson test -C "$root/build" --timeout-multiplier 40 --print-errorlogs "${@:---suite=kernels}"
