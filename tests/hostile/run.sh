#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the must-fail corpus and lets a program look at it.
#
#   run.sh PYTHON MAKE.PY PROGRAM
set -eu
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
PYTHONDONTWRITEBYTECODE=1 "$1" "$2" "$corpus"
"$3" "$corpus"
