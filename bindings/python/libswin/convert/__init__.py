# SPDX-License-Identifier: MIT
"""Checkpoints of PyTorch and Paddle to safetensors, without either, and without running anything that is in them.

    python3 -m libswin convert swin_tiny_patch4_window7_224.pth swin_tiny.safetensors

Read: `torch.save` files of every age (zip archive or stream), plain pickles of tensors or numpy arrays (detectron2's
.pkl, Paddle's .pdparams), with whatever else a training run put beside the weights. See `choose` for which weights
are taken where a file has several, `names` for what happens to objects that are no data.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ..arguments import c_text
from ..errors import ConvertError
from .choose import Choice, choose
from .containers import FileLoader
from .safetensors import write
from .source import Source

__all__ = ["Converted", "checkpoint"]

#: Tensors may share bytes, and each is written out on its own; a file that asks for more than this is an attack.
_MAX_GROWTH = 16


class Converted(NamedTuple):
    """What `checkpoint` did."""

    tensors: int         #: how many were written
    nbytes: int          #: bytes of them
    key: str             #: where in the file they were, e.g. "model"; "" at the top
    others: list[str]    #: keys of other weights in the file, e.g. "ema_state_dict"
    skipped: list[str]   #: tensors of kinds that safetensors has no name for (sparse, quantised, ...)


def checkpoint(source: str | os.PathLike[str], target: str | os.PathLike[str], key: str | None = None) -> Converted:
    """Converts the checkpoint `source` to the safetensors file `target`, tensor by tensor.

    Names and element types stay as they are. `key` says where in the file the weights are, as a dotted path such as
    "ema.module", where the frameworks' own order of preference is not wanted.

    Raises `ConvertError` where the file is broken, asks for code to be run, or holds no weights, and `OSError` where it
    cannot be read or written. `target` then is as it was before.
    """
    source, target = os.fspath(source), os.fspath(target)
    for path in (source, target):
        c_text("path", path, os.fsencode)
    with open(source, "rb") as file:
        if os.path.exists(target) and os.path.samefile(source, target):
            raise ConvertError(f"{source}: would be overwritten by its own conversion")
        try:
            whole = Source(file)
            choice = choose(FileLoader(whole).load(), key)
            nbytes = _check_growth(choice, whole.size)
            write(target, choice.tensors, {"format": "pt", "source": os.path.basename(source)})
        except ConvertError as error:
            raise ConvertError(f"{source}: {error}") from None
    return Converted(len(choice.tensors), nbytes, choice.key, choice.others, choice.skipped)


def _check_growth(choice: Choice, size: int) -> int:
    nbytes = sum(tensor.nbytes for tensor in choice.tensors.values())
    if nbytes > _MAX_GROWTH * size + (1 << 20):
        raise ConvertError(f"{len(choice.tensors)} tensors claim {nbytes} bytes, more than {_MAX_GROWTH} times the "
                           f"file's {size}")
    return nbytes
