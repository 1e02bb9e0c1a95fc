# SPDX-License-Identifier: MIT
"""What the C library says of its structs and of swin-dump's options, said of Python's keywords."""

from __future__ import annotations

import glob
import json
import os
import re
import shutil

import numpy as np
import pytest

import libswin
from libswin.errors import from_status, in_python

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "golden")
LIBRARY = os.path.join(HERE, "..", "..", "lib")
IMAGE = np.zeros((40, 50, 3), np.uint8)


def opened(name, **options):
    return libswin.load(os.path.join(GOLDEN, f"{name}.safetensors"), **options)


def with_config(tmp_path, name, **hints):
    shutil.copy(os.path.join(GOLDEN, f"{name}.safetensors"), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(hints))
    return libswin.load(tmp_path / "model.safetensors")


def changed(tmp_path, name, change):
    """A file with other tensors: `change` is given {name: (dtype, shape, bytes)}."""
    with open(os.path.join(GOLDEN, f"{name}.safetensors"), "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body = file.read()
    header.pop("__metadata__", None)
    tensors = change({key: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])])
                      for key, entry in header.items()})
    header, body = {}, b""
    for key, (dtype, shape, data) in tensors.items():
        header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    (tmp_path / "changed.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + body)
    return libswin.load(tmp_path / "changed.safetensors")


def twice(tensors):
    return {f"{which}.{key}": value for which in ("student", "teacher") for key, value in tensors.items()}


def oblong_positions(tensors):
    """A position embedding of 7 places."""
    def cut(key, dtype, shape, data):
        places = np.frombuffer(data, np.uint8).reshape(shape[1], -1) if "absolute_pos" in key else None
        return (dtype, shape, data) if places is None else (dtype, [1, 7, shape[2]], places[:7].tobytes())
    return {key: cut(key, *value) for key, value in tensors.items()}


@pytest.mark.parametrize("act, message", [
    (lambda tmp: opened("v1-four")(IMAGE, threads=-1), r"threads is -1, expected 0 to \d+"),
    (lambda tmp: opened("v1-four").session_info(threads=-7), r"threads is -7, expected 0 to \d+"),
    (lambda tmp: opened("v1-four", version=3), "version is 3, expected 0 to 2"),
    (lambda tmp: opened("v1-four", version=2), r".*holds a Swin V1, expected V2 as asked \(version=\)"),
    (lambda tmp: opened("v1-four", window=500), r"window of stage 0 is \{500, 500\}, expected both 1 to 128"),
    (lambda tmp: opened("v1-four", window=-7), "window of stage 0 is -7 x -7, expected two positive numbers or 0 x 0"),
    (lambda tmp: opened("v1-four", pretrained_window=8),
     r"pretrained_window of stage 0 is \{8, 8\}, but the file holds a Swin V1, which has none"),
    (lambda tmp: opened("v2-microsoft", pretrained_window=1),
     r"pretrained_window of stage 0 is \{1, 1\}, expected both 2 to 128"),
    (lambda tmp: opened("v2-microsoft", pretrained_window=(8, (0, 8), 8)),
     "pretrained_window of stage 1 is 0 x 8, expected two positive numbers or 0 x 0"),
    (lambda tmp: opened("v1-four", image_size=(0, 5)), "image_size is 0 x 5, expected two positive numbers or 0 x 0"),
    (lambda tmp: opened("v1-four", image_size=1 << 30),
     r"image_size is \{1073741824, 1073741824\}, expected both 1 to \d+"),
    (lambda tmp: opened("v1-four", max_header_bytes=16), r".*, expected at most 16 \(max_header_bytes=\)"),
    (lambda tmp: opened("v2-timm"), r"nothing tells the window of stage 0 .*; give it \(window=\)"),
    (lambda tmp: opened("v1-timm-rectangle"), r".* has 45 entries, .*; give the window of stage 0 \(window=\)"),
    (lambda tmp: with_config(tmp, "v2-timm", model_type="swinv2", window_size=8, pretrained_window_sizes=[1, 1, 1]),
     r"the pre-training window of stage 0 is 1 in config.json, .*; give it \(pretrained_window=\)"),
    (lambda tmp: changed(tmp, "v1-four", twice),
     r"2 Swin Transformers in one file, expected one; give the prefix of one \(prefix=\): .*student.*teacher.*"),
    (lambda tmp: changed(tmp, "v1-microsoft-position", oblong_positions),
     r".* has 7 positions, .*; give the size of the image that it was made for \(image_size=\)"),
    (lambda tmp: opened("v1-four").attention(IMAGE, 4, 0, window=0), "stage is 4, expected 0 to 3"),
    (lambda tmp: opened("v1-four").attention(IMAGE, 0, 0, query=(40, 0)), "query is row 40, column 0, outside of .*"),
])
def test_what_the_library_refuses(tmp_path, act, message):
    with pytest.raises(libswin.Error) as caught:
        act(tmp_path)
    assert re.fullmatch(message, str(caught.value)), str(caught.value)


def test_reasons():
    assert opened("v1-timm").info.window_reason.endswith("so each image's own limits them (image_size=)")


def literals():
    """What the library's sources say of params and options, with numbers in place of conversions."""
    found = set()
    for path in glob.glob(os.path.join(LIBRARY, "**", "*.c"), recursive=True):
        with open(path, encoding="utf-8") as file:
            for run in re.findall(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', file.read()):
                text = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', run))
                if re.search(r"\b(?:params|request)\.[\w%]|--[a-z]|max_header_bytes\)", text):
                    found.add(re.sub(r"%\.?\d*[a-z]", "7", text.replace("params.%s", "params.window")
                                     .replace("request.%s", "request.head")))
    return sorted(text + (" is 7" if re.fullmatch(r"params\.\w+", text) else "") for text in found)


def test_every_message_of_the_sources():
    """None is left behind when the library gets another one."""
    said = literals()
    assert len(said) >= 20
    for text in said:
        assert not re.search(r"params|request\.|--[a-z]|_bytes\)", in_python(text)), text
        assert re.match(r"[\w\"(;, ]", in_python(text)), text


@pytest.mark.parametrize("message", [
    "params.safetensors is a zip archive, as torch.save() writes it, not a safetensors file",
    "params.window.pth is 3 bytes long", "cannot open params.pth: No such file or directory",
    "params has struct_size 3, expected 48: was it initialised?", "config.heads of stage 0 is 3",
    "tensor \"params.window\" has 3 entries", "the window (of stage 0) is 7", "request.pth is a directory",
])
def test_everything_else_stays(message):
    assert in_python(message) == message == str(from_status(1, message))
