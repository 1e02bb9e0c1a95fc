# SPDX-License-Identifier: MIT
"""Image files of a command line, directories of them included, and how they become arrays."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import NamedTuple, Optional

import numpy as np

from .errors import ArgumentError

_USUAL = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
_SHOWN = 4  # names of what was passed over


class Picture(NamedTuple):
    """One image to read."""

    path: str
    name: str               #: of its results, different for each
    problem: Optional[str]  #: why it cannot be read, where that is known already


class Pictures(NamedTuple):
    """What a command line asks for."""

    found: list[Picture]
    single: bool                #: one file, named by itself
    passed_over: Optional[str]  #: what of the directories is none of the pictures


def collect(paths: list[str]) -> Pictures:
    """Files as they are named, and of directories the pictures, in the order of their names. Hidden files are not
    looked at, and directories in directories not entered."""
    found: list[tuple[str, Optional[str]]] = []
    strange: list[str] = []
    for path in paths:
        if not os.path.isdir(path):
            found.append((path, None))
            continue
        try:
            entries = sorted(name for name in os.listdir(path) if name[0] != ".")
        except OSError as error:
            found.append((path, error.strerror))
            continue
        entries = [os.path.join(path, name) for name in entries]
        inside = [entry for entry in entries if _is_picture(entry)]
        found += [(entry, None) for entry in inside] or [(path, "there is no picture in it")]
        strange += [entry for entry in entries if not _is_picture(entry)]
    names = _names([path for path, _ in found])
    return Pictures([Picture(path, name, problem) for (path, problem), name in zip(found, names)],
                    len(paths) == 1 and not os.path.isdir(paths[0]), _passed_over(strange))


def read(path: str) -> np.ndarray:
    """An array of a .npy file, or RGB of whatever Pillow reads."""
    if path.lower().endswith(".npy"):
        try:
            return np.load(path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ArgumentError(f"is no array: {error}") from None
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise ArgumentError("reading it takes Pillow (pip install pillow); .npy arrays, and PNG files with swin-dump, "
                            "need nothing") from None
    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("RGB"))
    except UnidentifiedImageError:
        raise ArgumentError("is no image that Pillow knows") from None
    except Exception as error:  # its readers raise all kinds, and broken pictures meet them all
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise ArgumentError(f"cannot be read by Pillow: {error or type(error).__name__}") from None


def _is_picture(path: str) -> bool:
    return os.path.splitext(path)[1].lower() in _suffixes() and not os.path.isdir(path)


@lru_cache(maxsize=None)
def _suffixes() -> frozenset[str]:
    try:
        from PIL import Image
    except ImportError:
        return frozenset((".npy", *_USUAL))
    known = Image.registered_extensions()  # some of which it can only write
    return frozenset([".npy", *(suffix for suffix in known if known[suffix] in Image.OPEN)])


def _passed_over(paths: list[str]) -> Optional[str]:
    files = [path for path in paths if not os.path.isdir(path)]
    parts = []
    if files:
        shown = ", ".join(files[:_SHOWN]) + (", ..." if len(files) > _SHOWN else "")
        parts.append(f"{_count(len(files), 'file')} without the name of a picture ({shown})")
    if len(paths) > len(files):
        parts.append(f"{_count(len(paths) - len(files), 'directory', 'directories')} in a directory")
    return f"passed over {' and '.join(parts)}" if parts else None


def _count(number: int, one: str, more: str = "") -> str:
    return f"{number} {one if number == 1 else more or one + 's'}"


def _names(paths: list[str]) -> list[str]:
    """A name for each, told apart where two files have the same one.

    >>> _names(["a/x.png", "b/x.jpg", "x-2.png", "y.npy"])
    ['x', 'x-2', 'x-2-2', 'y']
    """
    names: dict[str, None] = {}
    for path in paths:
        stem = os.path.splitext(os.path.basename(path.rstrip(os.sep)))[0]
        name, count = stem, 1
        while name in names:
            count += 1
            name = f"{stem}-{count}"
        names[name] = None
    return list(names)
