# SPDX-License-Identifier: MIT
"""Everything that libswin raises is an `Error`; its text is what the C library says, with the names of Python."""

from __future__ import annotations

import re


class Error(Exception):
    """Base of all errors. `status` is the library's swin_status, 0 where Python itself found the fault."""

    status = 0
    backend = 0  #: oneDNN's own status where it refused


class ArgumentError(Error, ValueError):
    """The caller passed something impossible."""

    status = 1


class StateError(Error, RuntimeError):
    """The object cannot do this now."""

    status = 2


class NoMemoryError(Error, MemoryError):
    """Memory could not be had."""

    status = 3


class FileError(Error, OSError):
    """A file could not be opened or read."""

    status = 4


class FormatError(Error, ValueError):
    """The file is broken, or is no safetensors file."""

    status = 5


class UnsupportedError(Error):
    """The file is fine, libswin cannot compute it."""

    status = 6


class MismatchError(Error, ValueError):
    """The tensors do not form a Swin Transformer, or not the one asked for."""

    status = 7


class LimitError(Error):
    """A safety limit was hit."""

    status = 8


class BackendError(Error, RuntimeError):
    """oneDNN refused."""

    status = 9


class InternalError(Error, RuntimeError):
    """A fault in libswin."""

    status = 10


class LibraryError(Error, ImportError):
    """libswin.so was not found, or is not the one that this package was made for."""


class ConvertError(Error, ValueError):
    """A checkpoint could not be converted."""


_BY_STATUS = {cls.status: cls for cls in (
    ArgumentError, StateError, NoMemoryError, FileError, FormatError, UnsupportedError, MismatchError, LimitError,
    BackendError, InternalError)}


# What begins a message is told from a path that begins with the same word.
_C_NAMES = re.compile(
    r"^(?:params|request)\.(?=(?:version|lineage|window|pretrained_window|image_size|out_norm|precision|threads|stage|"
    r"block|head|query) (?:is|of) )|\((?:params\.(\w+)(?:, --[a-z-]+)?|(max_header_bytes))\)")


def in_python(message: str) -> str:
    """A message of the C library with its fields, and the options of swin-dump, as keywords.

    >>> in_python("params.threads is -1, expected 0 to 1024")
    'threads is -1, expected 0 to 1024'
    >>> in_python("no published file name; give it (params.window, --window)")
    'no published file name; give it (window=)'
    """
    return _C_NAMES.sub(lambda found: f"({found[1] or found[2]}=)" if found[1] or found[2] else "", message)


def from_status(status: int, message: str, backend: int = 0) -> Error:
    """The exception that a swin_status stands for."""
    error = _BY_STATUS.get(status, InternalError)(in_python(message))
    error.status, error.backend = status, backend
    return error
