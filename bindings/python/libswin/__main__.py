# SPDX-License-Identifier: MIT
"""python -m libswin convert ..."""

from __future__ import annotations

import argparse
import os
import sys

from .errors import Error


def main(argv: list[str] | None = None) -> int:
    options = _options().parse_args(argv)
    try:
        return options.command(options)
    except (Error, OSError) as error:
        print(f"libswin: {_one_line(error)}", file=sys.stderr)
        return 1


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m libswin", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    convert = commands.add_parser(
        "convert", help="turn a PyTorch or Paddle checkpoint into safetensors",
        description="Turns a PyTorch (.pth, .pt, .bin, .pyth, .pkl) or Paddle (.pdparams) checkpoint into safetensors. Needs "
                    "neither framework and runs nothing that is in the file.")
    convert.add_argument("source", metavar="IN")
    convert.add_argument("target", metavar="OUT.safetensors")
    convert.add_argument("--key", help="where in IN the weights are, e.g. ema_state_dict (default: as IN's framework does)")
    convert.set_defaults(command=_convert)
    return parser


def _convert(options: argparse.Namespace) -> int:
    from . import convert

    done = convert.checkpoint(options.source, options.target, options.key)
    words = [f"{options.target}: {done.tensors} tensors, {done.nbytes / 1e6:.1f} MB"]
    if done.key:
        words.append(f"from {done.key!r}")
    if done.others:
        words.append(f"not {', '.join(map(repr, done.others[:4]))}{', ...' if len(done.others) > 4 else ''}")
    if done.skipped:
        words.append(f"without {len(done.skipped)} that safetensors cannot hold ({done.skipped[0]!r}"
                     f"{', ...' if len(done.skipped) > 1 else ''})")
    print(", ".join(words))
    return 0


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
