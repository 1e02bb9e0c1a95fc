# SPDX-License-Identifier: MIT
"""A strict reader of safetensors files, so that the tests need no package for it."""

from __future__ import annotations

import json
import math

_SIZE = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}


def read(path) -> tuple[dict[str, tuple[str, tuple[int, ...], bytes]], dict[str, str]]:
    """{name: (dtype, shape, bytes)} and the metadata; asserts everything the format demands."""
    data = open(path, "rb").read()
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__")
    assert list(header) == sorted(header)
    body, end, found = data[8 + length:], 0, {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        size = _SIZE[entry["dtype"]]
        assert first == end and first % size == 0, f"{name} at {first} after {end}"
        assert last - first == math.prod(entry["shape"]) * size
        found[name] = (entry["dtype"], tuple(entry["shape"]), body[first:last])
        end = last
    assert end == len(body)
    return found, metadata
