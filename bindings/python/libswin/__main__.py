# SPDX-License-Identifier: MIT
"""Converts checkpoints, says what they are, and computes feature maps. swin-dump does the last two without Python, and
draws pictures of the maps."""

from __future__ import annotations

import argparse
import signal
import sys
from argparse import ArgumentTypeError
from typing import Any, Optional

from . import __version__, library_version
from .commands import complain, convert, dump, info
from .errors import Error
from .prototypes import LINEAGES, MAX_STAGES, OUT_NORMS, PRECISIONS


def main(argv: Optional[list[str]] = None) -> int:
    options = _parser().parse_args(argv)
    try:
        return options.command(options)
    except (Error, OSError) as error:
        complain(error)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m libswin", description=__doc__)
    parser.add_argument("--version", action=_Version, nargs=0, help="of the package and of the library that it found")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_convert(commands.add_parser(
        "convert", help="turn a PyTorch or Paddle checkpoint into safetensors",
        description="Turns a PyTorch (.pth, .pt, .bin, .pyth, .pkl) or Paddle (.pdparams) checkpoint into safetensors. "
                    "Needs neither framework, and runs nothing that is in the file."))
    _add_info(commands.add_parser(
        "info", help="say what a safetensors checkpoint is",
        description="Says what a safetensors checkpoint is recognised as, and what becomes of its tensors."))
    _add_dump(commands.add_parser(
        "dump", help="write the feature maps of images as .npy files",
        description="Writes the feature maps c2.npy ... c5.npy and a summary.json of an image into DIR; of several "
                    "images or a directory of them, into DIR/<image name>/. Images are uint8 or float32 arrays in "
                    ".npy files, or whatever Pillow reads."))
    return parser


def _add_convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="IN")
    parser.add_argument("target", metavar="OUT.safetensors")
    parser.add_argument("--key", help="where in IN the weights are, e.g. ema_state_dict (default: where IN's framework "
                                      "looks)")
    parser.set_defaults(command=convert)


def _add_info(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("weights", metavar="FILE.safetensors")
    parser.add_argument("--json", action="store_true", help="for machines")
    _add_model_options(parser)
    parser.set_defaults(command=info)


def _add_dump(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("images", metavar="IMAGE|DIRECTORY", nargs="+")
    parser.add_argument("-w", "--weights", metavar="FILE", required=True, help="safetensors checkpoint")
    parser.add_argument("-o", "--out", metavar="DIR", default="swin-dump", help="default: ./swin-dump")
    parser.add_argument("--levels", type=_levels, metavar="L[,L...]",
                        help="which of 0,1,2,3 or c2,c3,c4,c5 (default: all)")
    parser.add_argument("--layout", choices=("nchw", "nhwc"), default="nchw")
    parser.add_argument("--precision", choices=PRECISIONS, default="auto",
                        help="default: auto, bf16 on a CPU with AMX, else f32")
    parser.add_argument("--threads", type=int, default=0, help="default: one per CPU")
    parser.add_argument("--mean", type=_numbers, metavar="R,G,B", help="in 0-255 units (default: ImageNet's)")
    parser.add_argument("--std", type=_numbers, metavar="R,G,B")
    parser.add_argument("--bgr", action="store_true", help="channels of the .npy images lie in the order B, G, R")
    parser.add_argument("--pad-divisor", type=int, metavar="N", help="pad images to a multiple of N")
    _add_model_options(parser)
    parser.set_defaults(command=dump)


def _add_model_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("instead of what is recognised")
    group.add_argument("--lineage", choices=LINEAGES, default="auto", help="whose arithmetic")
    group.add_argument("--window", type=_windows, metavar="W[,W...]",
                       help="window in tokens, of all stages or each: 7, 7x12 (rows x columns), 16,16,16,8")
    group.add_argument("--pretrained-window", type=_windows, metavar="W[,W...]",
                       help="V2: the window of pre-training, likewise")
    group.add_argument("--image-size", type=_size, metavar="HxW",
                       help="size the model was made for, by which timm's and Hugging Face's V2 lineages limit windows")
    group.add_argument("--prefix", help="which of several networks in the file, by what stands before its names")
    group.add_argument("--out-norm", choices=OUT_NORMS, default="auto", help="whether levels pass a LayerNorm")


def _levels(text: str) -> list[int]:
    names = {name: level for level in range(MAX_STAGES) for name in (str(level), f"c{level + 2}")}
    try:
        return [names[part] for part in text.split(",")]
    except KeyError:
        raise ArgumentTypeError(f"{text!r} are none of 0,1,2,3 or c2,c3,c4,c5 with commas between") from None


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(f"{text!r} are no numbers with commas between") from None


class _Version(argparse.Action):
    """Looks for the library only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *ignored: Any) -> None:
        try:
            print(f"libswin {__version__} for Python, libswin.so {library_version()}")
        except Error as error:
            complain(error)
            parser.exit(1)
        parser.exit()


def _windows(text: str) -> Any:
    """What `load` takes: a number or pair for all stages, or one for each."""
    try:
        pairs = [tuple(int(side) for side in part.split("x")) for part in text.split(",")]
    except ValueError:
        pairs = [()]
    if not all(1 <= len(pair) <= 2 and min(pair) > 0 for pair in pairs) or len(pairs) > MAX_STAGES:
        raise ArgumentTypeError(f"{text!r} is no window in tokens, such as 7 or 7x12, nor one for each stage: "
                                "16,16,16,8")
    sizes = [pair[0] if len(pair) == 1 else pair for pair in pairs]
    if len(sizes) > 1:
        return sizes
    return sizes[0] if isinstance(sizes[0], int) else [sizes[0]] * MAX_STAGES


def _size(text: str) -> Any:
    rows, _, columns = text.partition("x")
    if not (rows.isascii() and rows.isdigit() and columns.isascii() and columns.isdigit()):
        raise ArgumentTypeError(f"{text!r} is no HEIGHTxWIDTH in pixels, such as 224x224")
    return int(rows), int(columns)


def _terminate(number: int, frame: Any) -> None:
    """By way of an exception, so that nothing half-written is left."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup's
        signal.signal(signal.SIGHUP, _terminate)
    sys.exit(main())
