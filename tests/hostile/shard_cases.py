# SPDX-License-Identifier: MIT
"""Directories with an index of shards, or with a config.json beside a model: {name.status: {file: bytes}}.

In place of bytes stands what the "file" is: "directory" or "pipe".
"""

from __future__ import annotations

import json

from tensors import file_of, model

INDEX = "model.safetensors.index.json"
DEEP = 50000


def _shards(cases: dict[str, dict[str, bytes | str]]) -> None:
    tensors = model()
    names = list(tensors)
    half = len(names) // 2
    files = {"a.safetensors": file_of({name: tensors[name] for name in names[:half]}),
             "b.safetensors": file_of({name: tensors[name] for name in names[half:]})}
    right = {name: "a.safetensors" if at < half else "b.safetensors" for at, name in enumerate(names)}

    def put(name: str, weight_map: object = None, text: bytes | None = None,
            **others: bytes | str) -> None:
        index = json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}).encode() if text is None else text
        cases[name] = {**files, INDEX: index, **{key + ".safetensors": data for key, data in others.items()}}

    put("whole.ok", right)
    last = names[-1]
    for word, path in {"parent": "../a.safetensors", "absolute": "/etc/passwd", "dot": ".", "dots": "..", "empty": "",
                       "backslash": "..\\b.safetensors", "folder": "x/b.safetensors"}.items():
        put(f"path-{word}.format", {**right, last: path})
    put("path-of-the-index.format", {**right, last: INDEX})
    put("path-of-5000-characters.io", {**right, last: "b" * 5000})
    put("path-with-line-break.io", {**right, last: "b\n.safetensors"})
    put("shard-missing.io", {**right, last: "c.safetensors"})
    for kind in ("directory", "pipe"):
        put(f"shard-is-a-{kind}.io", right, b=kind)
        cases[f"model-is-a-{kind}.io"] = {"model.safetensors": kind}
        cases[f"index-is-a-{kind}.io"] = {INDEX: kind}
    put("shard-broken.format", right, b=b"{}")
    put("shard-wrong.format", {**right, last: "a.safetensors"})
    put("shard-has-more.format", {name: right[name] for name in names if name != names[3]})
    put("index-has-more.format", {**right, "more": "b.safetensors"})
    put("tensor-in-two-shards.format", right, b=file_of({**{n: tensors[n] for n in names[half:]},
                                                        names[0]: tensors[names[0]]}))
    put("map-number.format", {**right, last: 5})
    put("map-missing.format", text=b"{}")
    put("map-null.format", None)
    put("map-empty.format", {})
    put("root-list.format", text=b"[]")
    put("file-empty.format", text=b"")
    put("deep.format", text=b'{"weight_map":' + b'{"a":' * DEEP + b"1" + b"}" * (DEEP + 1))
    put("name-twice.format", text=b'{"weight_map":{"a":"a.safetensors","a":"a.safetensors"}}')
    put("shards-1025.limit", {f"t{at}": f"s{at}.safetensors" for at in range(1025)})
    put("too-many-values.limit", text=b'{"weight_map":{},"a":[' + b"0," * (1 << 20) + b"0]}")


def _configs(cases: dict[str, dict[str, bytes | str]]) -> None:
    """A V2 model whose window only the config.json tells."""
    whole = {"model_type": "swinv2", "embed_dim": 4, "depths": [1], "num_heads": [1], "patch_size": 2,
             "image_size": 64, "window_size": 4}

    def put(name: str, text: object) -> None:
        data = text if isinstance(text, bytes) else json.dumps(text).encode()
        cases[name] = {"model.safetensors": file_of(model(2)), "config.json": data}

    put("config.ok", whole)
    for kind in ("directory", "pipe"):
        cases[f"config-is-a-{kind}.mismatch"] = {"model.safetensors": file_of(model(2)), "config.json": kind}
    for word, change in {
            "window-0": {"window_size": 0}, "window-negative": {"window_size": -4},
            "window-text": {"window_size": "4"}, "window-null": {"window_size": None},
            "window-three": {"window_size": [4, 4, 4]}, "window-2^63": {"window_size": 2**63 - 1},
            "depths-others": {"depths": [2]}, "width-other": {"embed_dim": 8}}.items():
        put(f"config-{word}.mismatch", {**whole, **change})
    put("config-of-another-model.mismatch", {"model_type": "resnet"})
    put("config-broken.mismatch", b'{"model_type":')
    put("config-list.mismatch", b"[]")
    put("config-empty.mismatch", b"")
    put("config-deep.mismatch", b'{"a":' * DEEP + b"1" + b"}" * DEEP)
    put("config-in-itself.mismatch", {"backbone_config": {"backbone_config": whole}})
    put("config-of-5-MB.mismatch", b'{"a":"' + b"x" * (5 << 20) + b'"}')
    put("config-name-without-end.mismatch", {"architecture": "swinv2_tiny_window8_256." * 2000})


def cases() -> dict[str, dict[str, bytes | str]]:
    made: dict[str, dict[str, bytes | str]] = {}
    for part in (_shards, _configs):
        part(made)
    return made
