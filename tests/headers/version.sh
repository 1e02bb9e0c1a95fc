#!/bin/sh
# SPDX-License-Identifier: MIT
# Asks pkg-config and the library's dynamic section for the version, and lets the program `version` compare.
#
#   version.sh PROGRAM PROJECT_VERSION PC_DIRECTORY LIBRARY
set -eu
pc=$(sed -n 's/^Version: *//p' "$3/swin.pc")
soname=$(LC_ALL=C readelf --dynamic "$4" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
exec "$1" "$2" "$pc" "$soname"
