# SPDX-License-Identifier: MIT
"""Tensors that still lie in their file: an element type, a shape, strides, and where the bytes are.

Nothing is read before `Tensor.read`, and then only the tensor's own span, so that a checkpoint of any size is
converted in the memory of its largest tensor.
"""

from __future__ import annotations

import math
from typing import Protocol, Sequence

import numpy as np

from ..errors import ConvertError
from .source import Source

#: Bytes per element of the element types that safetensors names.
ITEM_SIZE = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "C64": 8,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}

MAX_DIMENSIONS = 32  # numpy's
_MAX_ELEMENTS = 1 << 59

#: The same types as torch spells them in `torch.<name>` ...
TORCH_DTYPES = {
    "float64": "F64", "double": "F64", "float32": "F32", "float": "F32", "float16": "F16", "half": "F16",
    "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "complex64": "C64",
    "int64": "I64", "long": "I64", "int32": "I32", "int": "I32", "int16": "I16", "short": "I16", "int8": "I8",
    "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL",
}

#: ... and in `torch.<Name>Storage`. None: bytes whose element type stands beside the tensor.
TORCH_STORAGES = {
    "DoubleStorage": "F64", "FloatStorage": "F32", "HalfStorage": "F16", "BFloat16Storage": "BF16",
    "ComplexFloatStorage": "C64", "LongStorage": "I64", "IntStorage": "I32", "ShortStorage": "I16",
    "CharStorage": "I8", "ByteStorage": "U8", "BoolStorage": "BOOL", "UntypedStorage": None,
}

#: Storages that are only stepped over, with their bytes per element.
OTHER_STORAGES = {
    "ComplexDoubleStorage": 16, "QInt8Storage": 1, "QUInt8Storage": 1, "QInt32Storage": 4, "QUInt4x2Storage": 1,
    "QUInt2x4Storage": 1,
}

#: And as numpy writes them, without the byte order.
NUMPY_CODES = {
    "f8": "F64", "f4": "F32", "f2": "F16", "c8": "C64", "i8": "I64", "i4": "I32", "i2": "I16", "i1": "I8",
    "u8": "U64", "u4": "U32", "u2": "U16", "u1": "U8", "b1": "BOOL",
}


class Bytes(Protocol):
    """Where the elements of a tensor come from."""

    def read_at(self, first: int, count: int) -> bytes: ...


class Storage:
    """What torch calls a storage: a run of elements, possibly shared by several tensors.

    `data` may be filled in after the tensors were made: the legacy stream stores it behind them.
    """

    __slots__ = ("dtype", "nbytes", "swapped", "data", "first")

    def __init__(self, dtype: str | None, nbytes: int, data: Bytes | None = None, swapped: bool = False) -> None:
        self.dtype = dtype
        self.nbytes = nbytes
        self.data = data
        self.swapped = swapped
        self.first = 0  # bytes; a view in a legacy stream starts inside its root

    def read_at(self, first: int, count: int) -> bytes:
        if self.data is None:
            raise ConvertError("a tensor's storage is not in the file")
        return self.data.read_at(self.first + first, count)


class Blob:
    """A long string of a pickle, left where it is.

    `text` says that the file holds UTF-8, whose characters are bytes in the sense of latin-1: that is how protocol 2
    carries the bytes of an array.
    """

    __slots__ = ("source", "text")

    def __init__(self, source: Source, text: bool) -> None:
        self.source = source
        self.text = text

    def read_at(self, first: int, count: int) -> bytes:
        if not self.text:
            return self.source.read_at(first, count)
        data = latin1_bytes(self.source.read_at(0, self.source.size))
        if first > len(data) or count > len(data) - first:
            raise ConvertError(f"an array has {len(data)} bytes, {first + count} wanted")
        return data[first:first + count]


def latin1_bytes(utf8: bytes) -> bytes:
    try:
        return utf8.decode("utf-8").encode("latin-1")
    except UnicodeError:
        raise ConvertError("the text of an array is not bytes in latin-1") from None


class Literal:
    """A short string of a pickle."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read_at(self, first: int, count: int) -> bytes:
        if first > len(self.data) or count > len(self.data) - first:
            raise ConvertError(f"an array has {len(self.data)} bytes, {first + count} wanted")
        return self.data[first:first + count]


class Tensor:
    """Elements of a storage, numbered by `shape` and `stride` (in elements) from `offset` on."""

    __slots__ = ("data", "dtype", "offset", "shape", "stride", "swapped")

    def __init__(self, data: Bytes, dtype: str, shape: Sequence[int], stride: Sequence[int], offset: int = 0,
                 swapped: bool = False, limit: int | None = None) -> None:
        for numbers, what in ((shape, "shape"), (stride, "stride"), ((offset,), "offset")):
            if not all(type(n) is int and 0 <= n < 1 << 48 for n in numbers):
                raise ConvertError(f"a tensor has the {what} {_all_shown(numbers)}")
        if len(shape) != len(stride):
            raise ConvertError(f"a tensor has {len(shape)} dimensions and {len(stride)} strides")
        if len(shape) > MAX_DIMENSIONS:
            raise ConvertError(f"a tensor has {len(shape)} dimensions, at most {MAX_DIMENSIONS} are known")
        if swapped and dtype == "C64":
            raise ConvertError("a tensor holds complex numbers in big-endian order")
        self.data = data
        self.dtype = dtype
        self.shape = tuple(shape)
        self.stride = tuple(stride)
        self.offset = offset
        self.swapped = swapped and ITEM_SIZE[dtype] > 1
        if limit is not None and (offset + self.span) * ITEM_SIZE[dtype] > limit:
            raise ConvertError(f"a tensor of shape {list(shape)}, strides {list(stride)} and offset {offset} needs "
                               f"{(offset + self.span) * ITEM_SIZE[dtype]} bytes, its storage has {limit}")
        # numpy refuses what does not fit the address range, empty ones included.
        if math.prod(side for side in shape if side > 0) >= _MAX_ELEMENTS:
            raise ConvertError(f"a tensor has the shape {list(shape)}, which no memory holds")

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.count * ITEM_SIZE[self.dtype]

    @property
    def span(self) -> int:
        """Elements from the first to the last one in use, both included."""
        if self.count == 0:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride))

    def read(self) -> np.ndarray:
        """The elements, dense, row-major, little-endian, as unsigned integers of the same size."""
        size = ITEM_SIZE[self.dtype]
        raw = self.data.read_at(self.offset * size, self.span * size)
        flat = np.frombuffer(raw, dtype=f">u{size}" if self.swapped else f"<u{size}")
        view = np.lib.stride_tricks.as_strided(flat, self.shape, [s * size for s in self.stride], writeable=False)
        return np.ascontiguousarray(view, dtype=f"<u{size}").reshape(self.shape)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    stride = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        stride[axis] = stride[axis + 1] * max(shape[axis + 1], 1)
    return tuple(stride)


def column_major(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(reversed(row_major(tuple(reversed(shape)))))


def shown(value: object) -> str:
    """`value` for a message. Of what nests only the type is told: a tuple of tuples can be short in its file and
    endless in writing, or deeper than the stack."""
    if type(value) in (str, bytes):
        return repr(value[:80])  # type: ignore[index]
    return repr(value)[:80] if type(value) in (int, float, bool, type(None)) else type(value).__name__


def _all_shown(numbers: Sequence[object]) -> str:
    return f"({', '.join(map(shown, numbers[:8]))}{', ...' if len(numbers) > 8 else ''})"
