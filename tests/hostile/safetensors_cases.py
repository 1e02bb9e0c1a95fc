# SPDX-License-Identifier: MIT
"""Files for the safetensors reader and for what looks for a model in them: {name.status: bytes}."""

from __future__ import annotations

import json
import struct
from typing import Callable

from tensors import NORM, QKV, TABLE, Tensors, assemble, data_of, file_of, header_of, model, zeros

MAX = 2**63 - 1


def _lengths(cases: dict[str, bytes]) -> None:
    whole = file_of(model())
    header = struct.unpack("<Q", whole[:8])[0]
    for cut in (0, 1, 7, 8, 9, 8 + header // 2, 8 + header - 1, 8 + header, 8 + header + 1, len(whole) - 1):
        cases[f"cut-at-{cut}.format"] = whole[:cut]
    # Behind every structural character of a header of one tensor.
    small = file_of({"a": zeros(1)})
    for at, byte in enumerate(small[8:-4]):
        if byte in b'{}[]:,"':
            cases[f"cut-behind-byte-{at}.format"] = small[:9 + at] if 9 + at < len(small) - 4 else small[:-4]
    for length in (0, 1, 2, header - 1, header + 1, 2**31, 2**32, 2**62, 2**63 - 8, 2**63, 2**64 - 9, 2**64 - 8,
                   2**64 - 1, len(whole) - 7):
        cases[f"header-length-{length}.format"] = struct.pack("<Q", length) + whole[8:]
    cases["bytes-behind-the-data.ok"] = whole + b"more"
    cases["blanks-behind-the-header.ok"] = assemble(json.dumps(header_of(model())).encode() + b" " * 9,
                                                    data_of(model()))


def _offsets(cases: dict[str, bytes]) -> None:
    def put(name: str, offsets: object) -> None:
        cases[name] = file_of(model(), lambda header: header[QKV].update(data_offsets=offsets))

    begin, end = header_of(model())[QKV]["data_offsets"]
    total = len(data_of(model()))
    put("offsets-reversed.format", [end, begin])
    put("offsets-negative.format", [-192, 0])
    put("offsets-overlap-by-one-element.format", [begin - 4, end - 4])
    put("offsets-of-another-tensor.format", [0, end - begin])
    put("offsets-behind-the-end.format", [total, total + end - begin])
    put("offsets-over-the-end.format", [total - 4, total - 4 + end - begin])
    put("offsets-too-few-bytes.format", [begin, end - 4])
    put("offsets-too-many-bytes.format", [begin, end + 4])
    put("offsets-2^62.format", [2**62, 2**62 + end - begin])
    put("offsets-max.format", [MAX - (end - begin), MAX])
    put("offsets-2^63.format", [2**63, 2**63 + end - begin])
    put("offsets-wrap.format", [2**64 - (end - begin), 2**64])
    put("offsets-one.format", [begin])
    put("offsets-three.format", [begin, end, end])
    put("offsets-fractions.format", [float(begin), float(end)])
    put("offsets-text.format", ["0", "192"])
    put("offsets-object.format", {"begin": begin})
    put("offsets-null.format", None)
    overlapping = header_of({"a": zeros(4), "b": zeros(4)})
    overlapping["b"]["data_offsets"] = [15, 31]
    cases["overlap-by-one-byte.format"] = assemble(json.dumps(overlapping).encode(), bytes(64))
    cases["a-gap.mismatch"] = assemble(json.dumps({
        "a": {"dtype": "F32", "shape": [1], "data_offsets": [3, 7]},
        "b": {"dtype": "F32", "shape": [1], "data_offsets": [9, 13]}}).encode(), bytes(16))


def _shapes(cases: dict[str, bytes]) -> None:
    def put(name: str, shape: object, **others: object) -> None:
        cases[name] = file_of(model(), lambda header: header[QKV].update(shape=shape, **others))

    begin = header_of(model())[QKV]["data_offsets"][0]
    put("shape-negative.format", [-12, -4])
    put("shape-fraction.format", [12.0, 4])
    put("shape-exponent.format", [1e1, 4])
    put("shape-text.format", "12,4")
    put("shape-null.format", None)
    put("shape-true.format", [True, 48])
    put("shape-nested.format", [[12, 4]])
    put("shape-product-2^64.format", [2**32, 2**32])
    put("shape-product-wraps-to-itself.format", [2**62, 4, 12, 4])
    put("shape-bytes-wrap.format", [2**61, 2])
    put("shape-2^63.format", [2**63, 1])
    put("shape-max.format", [MAX, MAX, MAX])
    put("shape-huge-but-zero.mismatch", [MAX, 0, MAX], data_offsets=[0, 0])
    put("shape-zero.mismatch", [0, 4], data_offsets=[0, 0])
    put("shape-none.format", [])
    put("shape-eight-dimensions.mismatch", [12, 4] + [1] * 6)
    put("shape-nine-dimensions.unsupported", [12, 4] + [1] * 7)
    put("shape-of-a-million-digits.format", [12, int("4" + "0" * 2000)])
    put("shape-of-another-width.mismatch", [6, 8])
    put("type-unknown.unsupported", [12, 4], dtype="Q4")
    put("type-of-integers.unsupported", [12, 4], dtype="I32")
    put("type-wider.format", [12, 4], dtype="F64")
    put("type-narrower.format", [12, 4], dtype="BF16")
    put("type-of-four-bits.unsupported", [12, 4], dtype="F4", data_offsets=[begin, begin + 24])
    put("type-of-odd-bits.format", [1], dtype="F4", data_offsets=[0, 1])
    put("type-number.format", [12, 4], dtype=5)
    put("type-null.format", [12, 4], dtype=None)
    put("type-long.unsupported", [12, 4], dtype="F32" * 4000)


def _json(cases: dict[str, bytes]) -> None:
    def text(name: str, change: Callable[[bytes], bytes]) -> None:
        cases[name] = file_of(model(), lambda header: change(json.dumps(header).encode()))

    entry = json.dumps({QKV: header_of(model())[QKV]}).encode()[1:-1]
    text("name-twice.format", lambda t: b"{" + entry + b"," + t[1:])
    text("name-twice-once-escaped.format", lambda t: b"{" + entry.replace(b"qkv", b"\\u0071kv") + b"," + t[1:])
    text("name-with-nul.format", lambda t: t.replace(b"qkv", b"q\\u0000v"))
    text("name-with-raw-nul.format", lambda t: t.replace(b"qkv", b"q\0v"))
    text("name-with-control.format", lambda t: t.replace(b"qkv", b"q\x1bv"))
    text("utf8-stray.format", lambda t: t.replace(b"qkv", b"q\xffv"))
    text("utf8-overlong.format", lambda t: t.replace(b"qkv", b"q\xc0\xafv"))
    text("utf8-surrogate.format", lambda t: t.replace(b"qkv", b"q\xed\xa0\x80v"))
    text("utf8-cut.format", lambda t: t.replace(b"qkv", b"qk\xe2\x82"))
    text("utf8-too-large.format", lambda t: t.replace(b"qkv", b"q\xf5\x80\x80\x80v"))
    text("surrogate-alone.format", lambda t: t.replace(b"qkv", b"q\\ud800v"))
    text("bom.format", lambda t: b"\xef\xbb\xbf" + t)
    text("blank-in-front.format", lambda t: b" " + t)
    text("rubbish-behind.format", lambda t: t + b"x")
    text("nul-behind.format", lambda t: t + b"\0")
    text("comment.format", lambda t: b"{/* */" + t[1:])
    text("comma-too-many.format", lambda t: t[:-1] + b",}")
    text("brace-missing.format", lambda t: t[:-1])
    text("infinity.format", lambda t: t.replace(b"[12, 4]", b"[12, Infinity]"))
    text("number-too-large-for-a-double.format", lambda t: t.replace(b"[12, 4]", b"[12, 1e999]"))
    text("deep-arrays.format", lambda t: b'{"a":' + b"[" * 100000 + b"]" * 100000 + b"}")
    text("deep-objects.format", lambda t: b'{"a":' * 100000 + b"1" + b"}" * 100000)
    text("deep-unfinished.format", lambda t: b"{" + b"[" * 200000)
    text("deep-in-a-field.format", lambda t: t.replace(b'"F32"', b'"F32","more":[[[1]]]', 1))
    text("field-unknown.ok", lambda t: t.replace(b'"F32"', b'"F32","more":1', 1))
    text("root-list.format", lambda t: b"[]")
    text("root-text.format", lambda t: b'"a"')
    text("root-empty.mismatch", lambda t: b"{}")
    text("entry-list.format", lambda t: b'{"a":[1]}')
    text("entry-null.format", lambda t: b'{"a":null}')
    text("entry-empty.format", lambda t: b'{"a":{}}')
    text("metadata-list.format", lambda t: b'{"__metadata__":[],' + t[1:])
    text("metadata-number.format", lambda t: b'{"__metadata__":{"a":1},' + t[1:])
    text("metadata-nested.format", lambda t: b'{"__metadata__":{"a":{"b":"c"}},' + t[1:])
    text("metadata.ok", lambda t: b'{"__metadata__":{"format":"pt"},' + t[1:])
    text("too-many-values.limit", lambda t: b'{"a":[' + b"0," * (1 << 20) + b"0]}")


def _kinds(cases: dict[str, bytes]) -> None:
    cases["a-zip.format"] = b"PK\3\4" + bytes(60)
    cases["a-pickle.format"] = b"\x80\x02}q\0." + bytes(60)
    cases["an-hdf5.format"] = b"\x89HDF\r\n\x1a\n" + bytes(60)
    cases["json-alone.format"] = b'{"weight_map":{}}' + bytes(20)


def _values(cases: dict[str, bytes]) -> None:
    for word, value in (("nan", float("nan")), ("inf", float("inf")), ("minus-inf", float("-inf"))):
        for name, key in (("qkv", QKV), ("norm", NORM), ("table", TABLE)):
            tensors = model()
            dtype, shape, data = tensors[key]
            tensors[key] = dtype, shape, struct.pack("<f", value) + data[4:]
            cases[f"{word}-in-{name}.nonfinite"] = file_of(tensors)


def _models(cases: dict[str, bytes]) -> None:
    def put(name: str, change: Callable[[Tensors], object], **kinds: int) -> None:
        tensors = model(**kinds)
        change(tensors)
        cases[name] = file_of(tensors)

    put("whole.ok", lambda t: None)
    for key in model():
        if key not in ("norm.weight", "norm.bias", "layers.0.blocks.0.attn.qkv.bias"):
            put(f"without-{key}.mismatch", lambda t: t.pop(key))
    put("v2-without-window.mismatch", lambda t: None, version=2)
    put("window-too-large.mismatch", lambda t: t.update({TABLE: zeros(257 * 257, 1)}))
    put("window-not-square.mismatch", lambda t: t.update({TABLE: zeros(10, 1)}))
    put("two-models.mismatch", lambda t: t.update({"teacher." + k: v for k, v in list(t.items())}))
    put("stage-five.unsupported", lambda t: t.update(
        {k.replace("layers.0", "layers.5"): v for k, v in list(t.items()) if "layers.0" in k}))
    put("block-missing.mismatch", lambda t: t.update(
        {k.replace("blocks.0", "blocks.2"): v for k, v in list(t.items()) if "blocks.0" in k}))
    put("heads-do-not-divide.mismatch", lambda t: t.update({TABLE: zeros(9, 3)}))
    put("a-norm-of-another-size.mismatch", lambda t: t.update({NORM: zeros(5)}))
    put("nothing-known.mismatch", lambda t: (t.clear(), t.update({"conv1.weight": zeros(4, 4)})))


def cases() -> dict[str, bytes]:
    made: dict[str, bytes] = {}
    for part in (_lengths, _offsets, _shapes, _json, _kinds, _values, _models):
        part(made)
    return made
