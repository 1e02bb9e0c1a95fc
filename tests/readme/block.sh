#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints the N-th fenced block of a language in a Markdown file, as it stands; fails where there is none.
#
#   block.sh FILE LANGUAGE N
set -eu
awk -v language="$2" -v wanted="$3" '
    /^```/ && fenced { fenced = 0; next }
    /^```/ { fenced = $0 == "```" language && ++count == wanted ? 2 : 1; found = found || fenced == 2; next }
    fenced == 2 { print }
    END { exit !found }
' "$1"
