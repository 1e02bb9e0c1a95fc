# SPDX-License-Identifier: MIT
"""Multi-scale feature maps of Swin Transformers, on CPUs, ready for an FPN-style detector.

    import libswin
    model = libswin.load("swin_tiny.safetensors")
    maps = model(image)                  # image: uint8 [H, W, 3]; maps: float32 [1, C, H, W], strides 4, 8, 16, 32

`load` and `random` give a `Model`; calling it gives the maps. Models are immutable: threads may share them, and their
calls run at the same time. After fork() a child goes on with the model of its parent, provided that no other thread of
the parent was inside `load` or the first call of a precision while it forked; pickled, e.g. by multiprocessing's spawn,
a model travels as its file's path.

`python3 -m libswin convert` turns PyTorch and Paddle checkpoints into the safetensors that `load` opens.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Optional, Sequence, Union

from .attention import Attention
from .config import Config, Size, Window, preset, preset_names
from .errors import (ArgumentError, BackendError, ConvertError, Error, FileError, FormatError, InternalError,
                     LibraryError, LimitError, MismatchError, NoMemoryError, StateError, UnsupportedError)
from .model import Info, Model, OutputShape, SessionInfo, load, random
from .prototypes import LINEAGES, library
from .selftest import KernelCheck, selftest

if TYPE_CHECKING:
    from .backbone import Backbone

#: Of this package; `library_version()` is that of the library it found.
__version__ = "0.1.0"

__all__ = [
    "ArgumentError", "Attention", "BackendError", "Config", "ConvertError", "Error", "FileError", "FormatError",
    "Info", "InternalError", "KernelCheck", "LINEAGES", "LibraryError", "LimitError", "MismatchError", "Model",
    "NoMemoryError", "OutputShape", "SessionInfo", "StateError", "UnsupportedError", "library_version", "load",
    "preset", "preset_names", "random", "selftest", "torch_backbone",
]


def library_version() -> str:
    """The version of the loaded libswin.so.

    >>> library_version().count(".")
    2
    """
    return library().swin_version_string().decode()


def torch_backbone(source: Union[str, "os.PathLike[str]", Model], *, out_indices: Sequence[int] = (0, 1, 2, 3),
                   names: Union[None, str, Sequence[str]] = None, precision: str = "auto", threads: int = 0,
                   version: int = 0, lineage: str = "auto", window: Optional[Window] = None,
                   pretrained_window: Optional[Window] = None, image_size: Optional[Size] = None,
                   out_norm: str = "auto", max_header_bytes: int = 0, prefix: Optional[str] = None) -> Backbone:
    """A `torch.nn.Module` in place of a detector's backbone: tensors [N, 3, H, W] in, tensors [N, C, H, W] out.

    source        path of a safetensors checkpoint, or a `libswin.Model`
    out_indices   which levels, e.g. (1, 2, 3)
    names         None: a tuple of maps, as mmdetection's necks take it. A dictionary of them otherwise: "res", of res2
                  to res5, as in Mask2Former; "p", of p0 to p3, as in detectron2; "c", of c2 to c5; or a name for each
                  of out_indices, in their order
    precision     "f32", "bf16", or "auto": that of a `libswin.Model`, of a file bf16 on a CPU with AMX, f32 elsewhere
    threads       how many work on a call; 0: one per CPU

    version, lineage, window, pretrained_window, image_size, out_norm, max_header_bytes, prefix: of the checkpoint, as
    in `load`; not with a `libswin.Model`, which is loaded already.

    The input is normalised already, as every detector's data preprocessor leaves it; tensors on another device or of
    another type make the way there and back.

    It is for inference: no gradients pass through it, and it has no parameters and no entries in `state_dict()`. So put
    it into the detector after the detector's `load_state_dict`, or give that strict=False. torch.compile leaves it as
    it is, and compiles what lies before and behind it (with fullgraph=True it refuses to).
    """
    from .backbone import Backbone  # needs PyTorch

    options = dict(version=version, lineage=lineage, window=window, pretrained_window=pretrained_window,
                   image_size=image_size, out_norm=out_norm, max_header_bytes=max_header_bytes, prefix=prefix)
    unset = load.__kwdefaults__
    given = {name: value for name, value in options.items()
             if type(value) is not type(unset[name]) or value != unset[name]}
    return Backbone(source, out_indices=out_indices, names=names, precision=precision, threads=threads, **given)
