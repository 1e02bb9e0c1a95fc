# SPDX-License-Identifier: MIT
"""Pictures of any library as the pixels that the C side borrows, without a copy where their layout allows it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, Optional, Sequence, Union

import numpy as np

from .arguments import int32, is_whole, items_of, real, shown
from .errors import ArgumentError
from .prototypes import PIXEL_BGR8, PIXEL_F32_PLANAR, PIXEL_RGB8, SwinImage, initialised

#: What `as_array` takes: numpy arrays, and everything with __array_interface__, __dlpack__ or __array__.
Image = Any
Images = Union[Image, Sequence[Image]]

#: (rows, columns), or a number of which the image size is rounded up to a multiple.
Canvas = Union[int, Sequence[int]]

_CPU_DEVICES = (1, 3, 11, 13)  # DLPack's CPU, and memory of others that the CPU may read
_HINT = "expected uint8 [H, W, 3] or [N, H, W, 3], or float32 [3, H, W] or [N, 3, H, W] that is normalised already"
_CONVERT = "convert it first, e.g. with .astype(numpy.float32), or .float() where it is a tensor"


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
            dtype = str(getattr(value, "dtype", "")).rpartition(".")[2]
            if "float" in dtype and dtype != "float32":  # bfloat16: numpy has none
                raise ArgumentError(f"an image is {dtype} {list(value.shape)}, {_HINT}; {_CONVERT}") from None
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
    if channels != 3 or image.size == 0 or max(image.shape) >= 1 << 31:
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
        advice = _CONVERT if "float" in array.dtype.name else ""
    return f"an image is {array.dtype} {list(shape)}, {_HINT}" + (f"; {advice}" if advice else "")


# ----------------------------------------------------------------------------------------------------------------------

def images_of(images: Sequence[Image]) -> list[np.ndarray]:
    """The images of a list of single ones."""
    if not images:
        raise ArgumentError("the list of images is empty")
    return [_entry(i, split(image)) for i, image in enumerate(images)]


def _entry(index: int, images: list[np.ndarray]) -> np.ndarray:
    if len(images) != 1:
        raise ArgumentError(f"entry {index} of the list is a batch of {len(images)}, single images expected")
    return images[0]


def check_normalisation(batch: list[Pixels], mean: Optional[Sequence[float]], std: Optional[Sequence[float]],
                        bgr: bool) -> None:
    """Refuses what contradicts the images."""
    for name, value in (("mean", mean), ("std", std)):
        if value is None:
            continue
        numbers = items_of(value)
        if numbers is None:
            raise ArgumentError(f"{name} is {shown(value)}, 3 values expected: red, green, blue")
        if len(numbers) != 3:
            raise ArgumentError(f"{name} has {len(numbers)} values, 3 expected: red, green, blue")
        for number in numbers:
            real(name, number)
    if any(one.format == PIXEL_F32_PLANAR for one in batch) and (mean is not None or std is not None or bgr):
        raise ArgumentError(
            "mean, std and bgr are given with a float32 image, which is taken as it is: normalised, RGB")


def canvas_of(batch: list[Pixels], canvas: Optional[Canvas]) -> tuple[int, int]:
    """Rows and columns of what is computed."""
    rows, columns = max(one.height for one in batch), max(one.width for one in batch)
    if canvas is None:
        return rows, columns
    if is_whole(canvas):
        multiple = int32("canvas", canvas)
        if multiple < 1:
            raise ArgumentError(f"canvas is {multiple}, a multiple from 1 on, or rows and columns expected")
        return int32("canvas", -(-rows // multiple) * multiple), int32("canvas", -(-columns // multiple) * multiple)
    sides = items_of(canvas)
    if sides is None or not all(map(is_whole, sides)):
        raise ArgumentError(f"canvas is {shown(canvas)}, a multiple from 1 on, or rows and columns expected")
    if len(sides) != 2 or sides[0] < rows or sides[1] < columns:
        raise ArgumentError(f"canvas is {shown(tuple(sides))}, rows and columns from {(rows, columns)} on expected")
    return int32("canvas", sides[0]), int32("canvas", sides[1])


@lru_cache(maxsize=None)
def _image_defaults() -> bytes:
    return bytes(initialised("swin_image"))


def as_struct(one: Pixels, rows: int, columns: int, mean: Optional[Sequence[float]],
              std: Optional[Sequence[float]]) -> SwinImage:
    """An image at the top left of a canvas of so many rows and columns."""
    made = SwinImage.from_buffer_copy(_image_defaults())
    made.data, made.format, made.height, made.width = one.address, one.format, one.height, one.width
    made.canvas_height, made.canvas_width = rows, columns
    made.row_stride, made.plane_stride = one.row_stride, one.plane_stride
    if mean is not None:
        made.mean[:] = [float(value) for value in mean]
    if std is not None:
        made.std[:] = [float(value) for value in std]
    return made
