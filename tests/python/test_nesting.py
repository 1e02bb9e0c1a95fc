# SPDX-License-Identifier: MIT
"""Pickles whose objects are small in the file, and endless or deeper than the stack for whoever walks through them; and
files that have the same work done again and again."""

from __future__ import annotations

import pickle
import re
import struct

import pytest

from libswin.convert import checkpoint, pickles
from test_hostile import refuse, run_limited

BILLIONS = b")" + b"2\x86" * 40  # a tuple of tuples: 2^40 of them when it is written out
DEEP = b")" + b"\x85" * 50_000
STREAM = [pickle.dumps(part, 2) for part in (0x1950a86a20f9469cfc6c, 1001, {"little_endian": True})]


def text(word):
    return b"X" + struct.pack("<I", len(word)) + word


def in_stream(program, storages=b"]" + text(b"0") + b"a."):
    return b"".join(STREAM) + b"\x80\x02" + program + b".\x80\x02" + storages + struct.pack("<q", 4) + bytes(16)


def storage(key=text(b"0"), count=b"K\4"):
    return b"(" + text(b"storage") + b"ctorch\nFloatStorage\n" + key + text(b"cpu") + count + b"tQ"


def tensor(offset=b"K\0", shape=b"K\4\x85", stride=b"K\1\x85"):
    return in_stream(b"}" + text(b"w") + b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage() + offset + shape + stride
                     + b"\x89}tRs")


def test_the_honest_stream(tmp_path):
    (tmp_path / "in").write_bytes(tensor())
    assert checkpoint(tmp_path / "in", tmp_path / "out")[:2] == (1, 16)


CASES = {
    "top": (lambda x: b"\x80\x02" + x + b".", "holds no dictionary of tensors, but a list"),
    "encode": (lambda x: b"\x80\x02c_codecs\nencode\n(" + text(b"x") + x + b"tR.", "encode is called for tuple, only"),
    "protocol": (lambda x: STREAM[0] + b"\x80\x02" + x + b".", "a torch stream of protocol tuple, 1001 expected"),
    "storage": (lambda x: in_stream(storage(key=x)), "a storage has the key tuple and 4 elements"),
    "count": (lambda x: in_stream(storage(count=x)), "a storage has the key '0' and tuple elements"),
    "storages": (lambda x: in_stream(b"}", b"]" + x + b"a."), "without a list of its storages"),
    "offset": (lambda x: tensor(offset=x), r"a tensor has the offset \(tuple"),
    "shape": (lambda x: tensor(shape=x), r"a tensor has the shape \(tuple"),
    "stride": (lambda x: tensor(stride=x), r"a tensor has the stride \(tuple"),
    "key": (lambda x: b"\x80\x02}" + x + b"K\1s.", "holds no tensors"),
}


@pytest.mark.parametrize("nested", [BILLIONS, DEEP], ids=["billions", "deep"])
@pytest.mark.parametrize("data, message", CASES.values(), ids=CASES)
def test_no_message_writes_out_what_nests(tmp_path, data, message, nested):
    assert re.search(message, run_limited(tmp_path, data(nested)))


STORED = b"\x80\x02" + b"N0" * 400 + b"N."
MANY = b"(" + b"N" * 400 + b"t\x85q\0" + b"0"


@pytest.mark.parametrize("prepared, repeated", [
    (b"B" + struct.pack("<I", len(STORED)) + STORED + b"\x85q\0" + b"0ctorch.storage\n_load_from_bytes\nq\1" + b"0",
     b"h\1h\0R0"),
    (MANY + b"c__builtin__\ntuple\nq\1" + b"0", b"h\1h\0R0"),
    (MANY + b"ctorch\nSize\nq\1" + b"0", b"h\1h\0R0"),
], ids=["storages", "tuples", "sizes"])
def test_everything_in_a_file_shares_its_steps(tmp_path, monkeypatch, prepared, repeated):
    monkeypatch.setattr(pickles, "_MAX_STEPS", 3000)
    refuse(tmp_path, b"\x80\x02" + prepared + 2 * repeated + b"N.", "holds no dictionary")
    refuse(tmp_path, b"\x80\x02" + prepared + 8 * repeated + b"N.", "longer than 3000 steps")


@pytest.mark.parametrize("data, message", [
    (b"\x80\x02c" + b"a" * 2000 + b"\nB\n.", "names something by 2002 characters"),
    (b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n)R(K\1(" + b"\x8a\7" + b"\xff" * 6 + b"\0" + b"2" * 40
     + b"tcnumpy\ndtype\nU\2f4\x85R\x89U\4abcdtb.", "a numpy array has 41 dimensions"),
])
def test_names_and_shapes_without_end(tmp_path, data, message):
    refuse(tmp_path, data, message)
