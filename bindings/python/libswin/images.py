# SPDX-License-Identifier: MIT
"""Pictures of any library as the pixels that the C side borrows, without a copy where their layout allows it."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence, Union

import numpy as np

from .errors import ArgumentError
from .prototypes import PIXEL_BGR8, PIXEL_F32_PLANAR, PIXEL_RGB8

#: What `as_array` takes: numpy arrays, and everything with __array_interface__, __dlpack__ or __array__.
Image = Any
Images = Union[Image, Sequence[Image]]

_CPU_DEVICES = (1, 3, 11, 13)  # DLPack's CPU, and memory of others that the CPU may read
_HINT = "expected uint8 [H, W, 3] or [N, H, W, 3], or float32 [3, H, W] or [N, 3, H, W] that is normalised already"


class Pixels(NamedTuple):
    """One image as swin_image describes it; `owner` keeps the memory."""

    address: int
    format: int
    height: int
    width: int
    row_stride: int
    plane_stride: int
    owner: np.ndarray


def as_array(value: Any) -> np.ndarray:
    """`value` as a numpy array that shares its memory, if there is any way to share it."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (str, bytes)) or hasattr(value, "__fspath__"):
        raise ArgumentError("an image is given by its path: read it first, e.g. with PIL.Image.open")
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        try:
            if value.__dlpack_device__()[0] in _CPU_DEVICES:
                return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise ArgumentError(f"an image cannot be shared: {error}") from None
        raise ArgumentError("an image is not in the CPU's memory: move it there first, e.g. with .cpu()")
    if hasattr(value, "__array__"):
        return np.asarray(value)
    raise ArgumentError(f"an image is a {type(value).__name__}, {_HINT}")


def split(value: Image) -> list[np.ndarray]:
    """The images [H, W, 3] or [3, H, W] of an array or of a batch of them."""
    array = as_array(value)
    if array.ndim == 3:
        return [_checked(array)]
    if array.ndim == 4 and len(array) > 0:
        return [_checked(image) for image in array]
    raise ArgumentError(_wrong(array))


def pixels(image: np.ndarray, bgr: bool) -> Pixels:
    """An image of `split` as it lies in memory; a dense copy of one that the C side cannot step through."""
    return _interleaved(image, bgr) if image.dtype == np.uint8 else _planar(image)


def _interleaved(image: np.ndarray, bgr: bool) -> Pixels:
    height, width, _ = image.shape
    row, pixel, channel = image.strides
    if abs(channel) != 1 or (pixel != 3 and width > 1) or (abs(row) < 3 * width and height > 1):
        image = np.array(image, order="C")
        row, pixel, channel = image.strides
    # image[..., ::-1] is the other channel order of the same memory.
    address = image.ctypes.data - (2 if channel < 0 else 0)
    pixel_format = PIXEL_BGR8 if bgr != (channel < 0) else PIXEL_RGB8
    return Pixels(address, pixel_format, height, width, row if height > 1 else 3 * width, 0, image)


def _planar(image: np.ndarray) -> Pixels:
    _, height, width = image.shape
    plane, row, column = image.strides
    if (column != 4 and width > 1) or (abs(row) < 4 * width and height > 1) or plane <= 0 or not image.flags.aligned:
        image = np.array(image, order="C")
        plane, row, column = image.strides
    return Pixels(image.ctypes.data, PIXEL_F32_PLANAR, height, width, row if height > 1 else 4 * width, plane, image)


def _checked(image: np.ndarray) -> np.ndarray:
    channels = image.shape[2] if image.dtype == np.uint8 else image.shape[0] if image.dtype == np.float32 else 0
    if channels != 3 or image.size == 0:
        raise ArgumentError(_wrong(image))
    return image


def _wrong(array: np.ndarray) -> str:
    shape = array.shape
    advice = ""
    if array.size == 0:
        advice = "it is empty"
    elif array.ndim == 0:
        advice = "it is a single number"
    elif array.dtype == np.float32 and shape[-1] == 3:
        advice = "float images are planar: .transpose(2, 0, 1), after normalisation"
    elif array.dtype == np.uint8 and array.ndim >= 3 and shape[-3] == 3:
        advice = "uint8 images are interleaved: .transpose(1, 2, 0)"
    elif array.dtype == np.uint8 and (array.ndim == 2 or shape[-1] in (1, 2, 4)):
        advice = "gray, palette and alpha are the reader's job, e.g. PIL's .convert('RGB')"
    elif array.dtype not in (np.uint8, np.float32):
        advice = "convert it first, e.g. with .astype(numpy.float32)" if array.dtype.kind == "f" else ""
    return f"an image is {array.dtype} {list(shape)}, {_HINT}" + (f"; {advice}" if advice else "")
