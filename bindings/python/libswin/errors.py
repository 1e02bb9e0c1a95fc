# SPDX-License-Identifier: MIT
"""Everything that libswin raises is an `Error`; its text is what the C library says."""

from __future__ import annotations


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


def from_status(status: int, message: str, backend: int = 0) -> Error:
    """The exception that a swin_status stands for."""
    error = _BY_STATUS.get(status, InternalError)(message)
    error.status, error.backend = status, backend
    return error
