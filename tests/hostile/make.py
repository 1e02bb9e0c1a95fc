# SPDX-License-Identifier: MIT
"""Writes the must-fail corpus: files that nobody should be able to do harm with, each named by what must come of it.

    make.py DIRECTORY

DIRECTORY/safetensors/NAME.STATUS          one file each; STATUS is a swin_status_string() of one word, "ok", or
                                           "nonfinite": opens, and the values that are no numbers are counted
DIRECTORY/checkpoints/NAME.STATUS/         an index and its shards, or a model and what lies beside it
DIRECTORY/png/NAME.WORD                    WORD is "ok", or occurs in the message
"""

from __future__ import annotations

import os
import sys

import png_cases
import safetensors_cases
import shard_cases


def write(path: str, data: bytes | str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if data == "directory":
        os.makedirs(path, exist_ok=True)
    elif data == "pipe":
        if not os.path.exists(path):
            os.mkfifo(path)
    else:
        with open(path, "wb") as file:
            file.write(data)


def main(directory: str) -> None:
    for folder, cases in (("safetensors", safetensors_cases.cases()), ("png", png_cases.cases())):
        for name, data in cases.items():
            write(os.path.join(directory, folder, name), data)
    for name, files in shard_cases.cases().items():
        for file, data in files.items():
            write(os.path.join(directory, "checkpoints", name, file), data)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
