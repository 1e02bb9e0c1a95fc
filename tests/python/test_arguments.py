# SPDX-License-Identifier: MIT
"""Numbers that do not fit, fractions, text where numbers are due, and NUL characters are refused by their names: ctypes
would cut them to something else."""

from __future__ import annotations

import dataclasses
import os
import re

import numpy as np
import pytest

import libswin
from libswin.convert import checkpoint

SMALL = libswin.Config(embed_dim=32, depths=(2, 2), heads=(1, 2), lineage="detection")
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "v1-four.safetensors")
IMAGE = np.zeros((40, 50, 3), np.uint8)
FAR = 1 << 32             # nothing is left of it in 32 bits
HUGE = 10 ** 5000         # Python does not write it out
WRONG = (FAR, -FAR, FAR + 1, HUGE, 1.0, 1.9, float("nan"), "1", None, [1])


@pytest.fixture(scope="module")
def model():
    return libswin.random(SMALL)


def refused(name, act):
    with pytest.raises(libswin.ArgumentError) as caught:
        act()
    assert re.match(rf"{name} (is|are|has) ", str(caught.value)) and "\n" not in str(caught.value), str(caught.value)
    assert len(str(caught.value)) < 600


NUMBERS = {
    "stage": lambda model, n: model.attention(IMAGE, n, 0, window=0),
    "block": lambda model, n: model.attention(IMAGE, 0, n, window=0),
    "head": lambda model, n: model.attention(IMAGE, 0, 0, window=0, head=n),
    "threads": lambda model, n: model(IMAGE, threads=n),
    "threads of a session": lambda model, n: model.session_info(threads=n),
    "threads of attention": lambda model, n: model.attention(IMAGE, 0, 0, window=0, threads=n),
    "height": lambda model, n: model.output_shapes(n, 50),
    "width": lambda model, n: model.output_shapes(40, n),
    "version": lambda model, n: libswin.load(GOLDEN, version=n),
    "seed": lambda model, n: libswin.random(SMALL, seed=n << 32 if n in (FAR, FAR + 1) else n),
    "max_header_bytes": lambda model, n: libswin.load(GOLDEN, max_header_bytes=n << 32 if n in (FAR, FAR + 1) else n),
    **{name: lambda model, n, name=name: dataclasses.replace(SMALL, **{name: n})
       for name in ("embed_dim", "version", "patch_size", "block_norm_period")},
    **{f"{name} of stages": lambda model, n, name=name: dataclasses.replace(SMALL, **{name: (2, n)})
       for name in ("depths", "heads", "out_norm", "block_norm_last")},
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("number", WRONG, ids=range(len(WRONG)))
def test_numbers(model, name, number):
    refused(name.split()[0], lambda: NUMBERS[name](model, number))


PAIRS = {
    "query": lambda model, x: model.attention(IMAGE, 0, 0, query=x),
    "canvas": lambda model, x: model(IMAGE, canvas=x),
    "canvas of attention": lambda model, x: model.attention(IMAGE, 0, 0, window=0, canvas=x),
    "window": lambda model, x: libswin.load(GOLDEN, window=[x] * 4),
    "pretrained_window": lambda model, x: libswin.load(GOLDEN, pretrained_window=[x] * 4),
    "image_size": lambda model, x: libswin.load(GOLDEN, image_size=x),
    "absolute_position": lambda model, x: dataclasses.replace(SMALL, absolute_position=x),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("pair", [
    (FAR + 1, 1), (1, FAR + 1), (100, HUGE), (1.9, 1.2), (100.0, 100.0), "ab", b"ab", ("1", "2"), float("nan"), 100.5,
    (), (100,), (100, 100, 100), {}, np.ones(2), np.ones((2, 2), int), FAR, HUGE, -FAR, object(),
], ids=range(20))
def test_pairs(model, name, pair):
    refused(name.split()[0], lambda: PAIRS[name](model, pair))


@pytest.mark.parametrize("name", ["mean", "std"])
@pytest.mark.parametrize("value", [
    "abc", "123", b"abc", 5, ("a", 1, 1), ("1", "1", "1"), (1, 1), (HUGE, 1, 1), (None, 1, 1), ([1], 1, 1), (1j, 1, 1),
    (1, 1, float("nan")), (1e300, 1, 1), iter((1, 1, 1)),
], ids=range(14))
def test_values(model, name, value):
    with pytest.raises(libswin.ArgumentError, match=rf"(^|: ){name}(\[\d\])? (is|has) "):
        model(IMAGE, **{name: value})


def test_windows_and_ratios(model):
    for n in (FAR, 0.0, 1.5, "a", None):
        if n is not None:
            refused("window", lambda: model.attention(IMAGE, 0, 0, window=n))
        refused("mlp_ratio", lambda: dataclasses.replace(SMALL, mlp_ratio="a" if n != "a" else HUGE))


def test_numbers_of_numpy_are_as_good(model):
    two = np.int64(2)
    assert model(IMAGE, threads=np.uint8(1), canvas=np.int16(64))[0].shape == (1, 32, 16, 16)
    assert model(IMAGE, canvas=np.array([64, 64]), mean=np.ones(3), std=np.ones(3, int))[0].shape == (1, 32, 16, 16)
    assert model.attention(IMAGE, np.int8(1), np.int32(1), query=np.array([3, 4]), head=np.int64(1)).cell == (0, 0)
    assert libswin.random(SMALL, seed=np.uint64((1 << 64) - 1)).config == SMALL
    assert dataclasses.replace(SMALL, depths=np.array([2, 2]), embed_dim=np.int64(32), version=np.int8(1)) == SMALL
    assert model.output_shapes(two * 20, np.int32(50)) == model.output_shapes(40, 50)


@pytest.mark.parametrize("act", [
    lambda: libswin.load(GOLDEN + "\0.txt"), lambda: libswin.load(os.fsencode(GOLDEN) + b"\0"),
    lambda: libswin.load(GOLDEN, prefix="backbone.\0x"), lambda: libswin.load(GOLDEN, prefix="\0"),
    lambda: libswin.preset("swin_tiny_patch4_window7_224\0x"), lambda: libswin.random("swin_tiny_patch4_window7_224\0"),
    lambda: checkpoint("a\0b", "c"), lambda: checkpoint(GOLDEN, "a\0b"),
], ids=range(8))
def test_nul_characters(act):
    said = r"^(path|prefix|the preset's name) b?'.*\\x00.*' holds a NUL character$"
    with pytest.raises(libswin.ArgumentError, match=said):
        act()


@pytest.mark.parametrize("act", [lambda: libswin.load(GOLDEN, prefix=5), lambda: libswin.load(GOLDEN, prefix="\ud800"),
                                 lambda: libswin.preset(5), lambda: libswin.preset(b"swin")], ids=range(4))
def test_what_is_no_text(act):
    with pytest.raises(libswin.ArgumentError, match=r"^(prefix|the preset's name) is .*, text expected$"):
        act()
