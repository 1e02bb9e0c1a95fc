# SPDX-License-Identifier: MIT
"""Reading and writing the files of this directory."""

import json
import struct
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
TYPES = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I32": np.int32, "I64": np.int64, "BOOL": np.bool_}


def write(name, tensors, metadata=None):
    """tensors: name -> array, or (type, array) where numpy lacks the type."""
    header, data, at = ({"__metadata__": metadata} if metadata else {}), [], 0
    for key, value in tensors.items():
        kind, value = value if isinstance(value, tuple) else (None, np.ascontiguousarray(value))
        kind = kind or next(k for k, t in TYPES.items() if value.dtype == t)
        payload = value.tobytes()
        header[key] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [at, at + len(payload)]}
        data.append(payload)
        at += len(payload)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (HERE / name).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))
    print(f"{name}: {at + len(text) + 8} bytes")


def read(name):
    raw = (HERE / name).read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for key, entry in header.items():
        start, end = entry["data_offsets"]
        payload = raw[8 + length + start:8 + length + end]
        tensors[key] = np.frombuffer(payload, TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata


def bf16(values):
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    assert not (bits & 0xffff).any()
    return "BF16", (bits >> 16).astype(np.uint16).reshape(values.shape)


def write_weights(name, state, storage, metadata):
    """state: a package's own state dict as arrays. storage: F32, F16 or BF16 for what is float32 there; all three hold
    the same numbers. Buffers that are derived (positions, indices) keep their type."""
    def stored(key, value):
        derived = key.endswith(("relative_coords_table", "relative_position_index", "attn_mask"))
        if value.dtype != np.float32 or derived or storage == "F32":
            return value
        if storage == "F16":
            assert (value.astype(np.float16).astype(np.float32) == value).all(), key
            return value.astype(np.float16)
        return bf16(value)

    write(name, {key: stored(key, value) for key, value in state.items()}, metadata)


def distance(a, b):
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def expect(name, cases, metadata, owner, extra=None, tolerance=1e-13):
    """cases: [(height, width, maps)]. The owner of an expectation writes it; every other package is compared with it
    and stops the run where it differs."""
    if owner:
        tensors = {}
        for i, (height, width, maps) in enumerate(cases):
            tensors[f"size.{i}"] = np.array([height, width], np.int32)
            for level, values in enumerate(maps):
                tensors[f"level{level}.{i}"] = np.asarray(values, np.float64)
        tensors.update(extra or {})
        write(name, tensors, metadata)
        return
    tensors, _ = read(name)
    worst, compared = 0.0, 0
    for i in range(sum(key.startswith("size.") for key in tensors)):
        for height, width, maps in cases:
            if (height, width) == tuple(tensors[f"size.{i}"]):
                compared += 1
                for level, values in enumerate(maps):
                    wanted = tensors[f"level{level}.{i}"]
                    assert values.shape == wanted.shape, (name, height, width, level, values.shape, wanted.shape)
                    error = distance(values, wanted)
                    worst = max(worst, error)
                    print(f"    {height} x {width} level {level}: {error:.1e}")
    assert compared == len(cases), (name, "sizes that the expectation lacks")
    print(f"{metadata['package']} {metadata['class']}: {worst:.1e} from {name}")
    if not worst <= tolerance:
        raise SystemExit(f"{metadata['package']} differs from {name}: {worst}")
