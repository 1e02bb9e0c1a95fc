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

from typing import TYPE_CHECKING, Any

from .attention import Attention
from .config import Config, preset, preset_names
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


def torch_backbone(source: Any, **options: Any) -> "Backbone":
    """A `torch.nn.Module` that stands in for the backbone of an mmdetection or detectron2 model; see `Backbone`."""
    from .backbone import Backbone  # needs PyTorch

    return Backbone(source, **options)
