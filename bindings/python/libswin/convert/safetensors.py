# SPDX-License-Identifier: MIT
"""Writes a safetensors file.

    u64 little-endian    length of the header, a multiple of 8
    header               JSON: {"__metadata__": {...}, name: {"dtype", "shape", "data_offsets": [first, end]}, ...}
    data                 tensors, dense and row-major, one behind the other

The header lists the names in order. The data holds wider elements first, so that every tensor is aligned to its own
elements; among equals the names' order decides. The same input gives the same bytes.
"""

from __future__ import annotations

import json
from typing import Mapping

import numpy as np

from ..errors import ConvertError
from ..files import whole
from .tensors import ITEM_SIZE, Tensor

_MAX_HEADER = 100 << 20  # what readers accept


def write(path: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Writes `tensors` to `path`, one at a time; on failure nothing is left, and an older file stays as it was."""
    header = _header(tensors, metadata)
    with whole(path) as out:
        out.write(len(header).to_bytes(8, "little"))
        out.write(header)
        for name in _data_order(tensors):
            try:
                data = tensors[name].read()
            except ConvertError as error:
                raise ConvertError(f"tensor {name!r}: {error}") from None
            out.write(data.reshape(-1).view(np.uint8).data)


def _data_order(tensors: Mapping[str, Tensor]) -> list[str]:
    return sorted(tensors, key=lambda name: (-ITEM_SIZE[tensors[name].dtype], name))


def _header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    offsets, end = {}, 0
    for name in _data_order(tensors):
        offsets[name] = [end, end + tensors[name].nbytes]
        end += tensors[name].nbytes
    entries: dict[str, object] = {"__metadata__": dict(metadata)}
    for name in sorted(tensors):
        if name == "__metadata__":
            raise ConvertError("a tensor is called '__metadata__', which safetensors keeps for itself")
        tensor = tensors[name]
        entries[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": offsets[name]}
    try:
        text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeError:
        raise ConvertError("the name of a tensor is no valid text") from None
    text += b" " * (-len(text) % 8)
    if len(text) > _MAX_HEADER:
        raise ConvertError(f"the names of {len(tensors)} tensors need a header of {len(text)} bytes, readers accept "
                           f"{_MAX_HEADER}")
    return text
