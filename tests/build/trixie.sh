#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds libswin and runs its suite on Debian 13, whose oneDNN is 3.7 and whose gcc is 14: the other generation of both.
#
#   trixie.sh ROOT [ARGUMENTS OF MESON TEST...]      as root, from the top of the tree
#
# ROOT is a directory with a Debian 13 in it; where there is none yet, debootstrap makes one. The machine's network
# and the mirror that its own apt uses serve for that; nothing outside ROOT is changed. The tree's tracked files are
# copied to ROOT/root/swin, and built there with warnings as errors in build/.
set -eu

if [ $# = 0 ]; then
    sed -n '3,/^set/s/^# \{0,1\}//p' "$0"
    exit 2
fi
root=$1
shift
test "$(id -u)" = 0 || {
    echo 'trixie.sh: must be root, for chroot and apt-get' >&2
    exit 2
}
packages='build-essential cmake meson pkg-config libdnnl-dev libjansson-dev libpng-dev libcmocka-dev python3-numpy
    python3-pip python3-pytest python3-setuptools python3-wheel'

if [ ! -e "$root/etc/debian_version" ]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep '/debian/*$' | head -n 1)
    debootstrap --variant=minbase trixie "$root" ${mirror:+"$mirror"}
fi
grep -q '^13' "$root/etc/debian_version" || {
    echo "trixie.sh: $root holds Debian $(cat "$root/etc/debian_version"), expected 13" >&2
    exit 2
}

rm -rf "$root/root/swin"
mkdir -p "$root/root/swin"
git -c safe.directory='*' ls-files -z | tar --null --no-recursion -T - -cf - | tar -xf - -C "$root/root/swin"
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true

# In a mount namespace of its own: what is mounted is gone afterwards, also after a failure.
cat >"$root/root/suite.sh" <<END
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
for package in $(echo $packages); do
    dpkg-query -W -f '\${Status}' \$package 2>/dev/null | grep -q ' installed\$' || missing="\${missing:-} \$package"
done
if [ -n "\${missing:-}" ]; then
    apt-get update
    apt-get install -y --no-install-recommends \$missing
fi
cd /root/swin
gcc --version | head -n 1
meson setup build -Dwerror=true
meson compile -C build
exec meson test -C build --print-errorlogs "\$@"
END
exec unshare --mount sh -c '
    root=$1
    shift
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin sh /root/suite.sh "$@"
' sh "$root" "$@"
