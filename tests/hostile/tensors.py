# SPDX-License-Identifier: MIT
"""Small Swin Transformers in Microsoft's naming, and safetensors files of them, whole or spoilt."""

from __future__ import annotations

import json
import struct
from typing import Callable

#: name: (dtype, shape, bytes)
Tensors = dict[str, tuple[str, list[int], bytes]]

QKV = "layers.0.blocks.0.attn.qkv.weight"
NORM = "layers.0.blocks.0.norm1.weight"
TABLE = "layers.0.blocks.0.attn.relative_position_bias_table"


def zeros(*shape: int, dtype: str = "F32", size: int = 4) -> tuple[str, list[int], bytes]:
    count = size
    for side in shape:
        count *= side
    return dtype, list(shape), bytes(count)


def model(version: int = 1, embed: int = 4, window: int = 2) -> Tensors:
    """One stage of one block, hidden as wide as the channels."""
    c, block = embed, "layers.0.blocks.0."
    tensors: Tensors = {
        "patch_embed.proj.weight": zeros(c, 3, 2, 2), "patch_embed.proj.bias": zeros(c),
        "patch_embed.norm.weight": zeros(c), "patch_embed.norm.bias": zeros(c),
        block + "norm1.weight": zeros(c), block + "norm1.bias": zeros(c),
        block + "attn.qkv.weight": zeros(3 * c, c), block + "attn.proj.weight": zeros(c, c),
        block + "attn.proj.bias": zeros(c),
        block + "norm2.weight": zeros(c), block + "norm2.bias": zeros(c),
        block + "mlp.fc1.weight": zeros(c, c), block + "mlp.fc1.bias": zeros(c),
        block + "mlp.fc2.weight": zeros(c, c), block + "mlp.fc2.bias": zeros(c),
        "norm.weight": zeros(c), "norm.bias": zeros(c),
    }
    if version == 1:
        tensors[block + "attn.qkv.bias"] = zeros(3 * c)
        tensors[block + "attn.relative_position_bias_table"] = zeros((2 * window - 1) ** 2, 1)
    else:
        tensors[block + "attn.q_bias"] = tensors[block + "attn.v_bias"] = zeros(c)
        tensors[block + "attn.logit_scale"] = zeros(1, 1, 1)
        tensors[block + "attn.cpb_mlp.0.weight"] = zeros(512, 2)
        tensors[block + "attn.cpb_mlp.0.bias"] = zeros(512)
        tensors[block + "attn.cpb_mlp.2.weight"] = zeros(1, 512)
    return tensors


def header_of(tensors: Tensors) -> dict:
    header, end = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + len(data)]}
        end += len(data)
    return header


def assemble(header: bytes, data: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def data_of(tensors: Tensors) -> bytes:
    return b"".join(data for _, _, data in tensors.values())


def file_of(tensors: Tensors, change: Callable[[dict], object] | None = None) -> bytes:
    """The file; `change` may alter the header's objects, or return its text."""
    header = header_of(tensors)
    text = change(header) if change is not None else None
    return assemble(text if isinstance(text, bytes) else json.dumps(header).encode(), data_of(tensors))
