# SPDX-License-Identifier: MIT
"""The tensors that every file in checkpoints/ holds, made of numbers that all element types hold exactly."""

from __future__ import annotations

import math

import numpy as np

#: name: element type and shape. What is special about each stands beside it in checkpoints/make.py.
TENSORS = {
    "backbone.patch_embed.proj.weight": ("F32", (2, 3, 2, 2)),
    "backbone.layers.0.blocks.0.attn.qkv.weight": ("F32", (6, 4)),
    "backbone.layers.0.blocks.0.attn.proj.weight": ("F32", (4, 3)),
    "backbone.layers.0.blocks.0.attn.query": ("F32", (2, 3)),
    "backbone.layers.0.blocks.0.attn.key": ("F32", (2, 3)),
    "backbone.layers.0.blocks.0.attn.relative_position_bias_table": ("F16", (9, 2)),
    "backbone.layers.0.blocks.0.attn.relative_position_index": ("I64", (4, 4)),
    "backbone.norm0.weight": ("BF16", (5,)),
    "backbone.norm0.bias": ("F64", (5,)),
    "backbone.mask": ("BOOL", (2, 5)),
    "backbone.expanded": ("F32", (4, 3)),
    "backbone.empty": ("F32", (0, 3)),
    "backbone.steps": ("I64", ()),
}

_NUMPY = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "BOOL": "|b1"}


def values(name: str) -> np.ndarray:
    """The numbers of a tensor: multiples of 1/8 between -3.75 and 3.75, so that float16 and bfloat16 hold them too."""
    dtype, shape = TENSORS[name]
    count, salt = math.prod(shape), list(TENSORS).index(name)
    numbers = (np.arange(count) * 7 + salt * 13) % 61 - 30
    if name == "backbone.expanded":
        numbers = np.tile(numbers[:3], 4)
    if dtype == "BOOL":
        return (numbers % 3 == 0).reshape(shape)
    if dtype == "I64":
        return numbers.astype("<i8").reshape(shape)
    return (numbers / 8).astype("<f4" if dtype == "BF16" else _NUMPY[dtype]).reshape(shape)


def raw(name: str) -> bytes:
    """The same as a safetensors file holds them."""
    if TENSORS[name][0] == "BF16":
        return (values(name).view("<u4") >> 16).astype("<u2").tobytes()
    return values(name).astype(_NUMPY[TENSORS[name][0]]).tobytes()
