# SPDX-License-Identifier: MIT
"""Checkpoints as PyTorch, mmengine and Paddle write them become safetensors, bit for bit."""

from __future__ import annotations

import collections
import os
import pickle
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import safetensors_file
from expected import TENSORS, raw, values
from libswin.convert import checkpoint
from libswin.errors import ConvertError

CHECKPOINTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checkpoints")
NO_BF16 = {name for name, (dtype, _) in TENSORS.items() if dtype == "BF16"}


def fixture(name: str) -> str:
    return os.path.join(CHECKPOINTS, name)


def check(path, without=frozenset()) -> None:
    found, _ = safetensors_file.read(path)
    assert set(found) == set(TENSORS) - set(without)
    for name, (dtype, shape, data) in found.items():
        assert (dtype, shape) == TENSORS[name], name
        assert data == raw(name), name


@pytest.mark.parametrize("name, key, others, without", [
    ("zip.pth", "model", [], ()),
    ("stream.pth", "model", [], ()),
    ("bare.bin", "", [], ()),
    ("timm.pth", "state_dict_ema", ["state_dict"], ()),
    ("slowfast.pyth", "model_state", [], ()),
    ("rtdetr.pth", "ema.module", ["model"], ()),
    ("mmengine.pth", "state_dict", ["ema_state_dict"], ()),
    ("module.pth", "", [], ()),
    ("tensors_p2.pkl", "model", [], ()),
    ("tensors_p4.pkl", "model", [], ()),
    ("arrays_p0.pkl", "model", [], NO_BF16),
    ("arrays_p2.pkl", "model", [], NO_BF16),
    ("arrays_p5.pkl", "model", [], NO_BF16),
    ("paddle.pdparams", "", [], ()),
    ("paddle_p2.pdparams", "", [], ()),
    ("paddle_nested.pdparams", "model", [], ()),
])
def test_every_container(tmp_path, name, key, others, without):
    out = tmp_path / "out.safetensors"
    done = checkpoint(fixture(name), out)
    check(out, without)
    assert (done.key, done.others, done.skipped) == (key, others, [])
    assert done.tensors == len(TENSORS) - len(without)
    assert safetensors_file.read(out)[1] == {"format": "pt", "source": name}
    assert os.listdir(tmp_path) == ["out.safetensors"]


def test_every_fixture_is_tested():
    listed = test_every_container.pytestmark[0].args[1]
    assert {case[0] for case in listed} | {"odd.pth", "make.py"} == set(os.listdir(CHECKPOINTS)) - {"__pycache__"}


def test_the_same_input_gives_the_same_bytes(tmp_path):
    for out in ("a", "b"):
        checkpoint(fixture("zip.pth"), tmp_path / out)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_tensors_that_safetensors_cannot_hold_are_named(tmp_path):
    done = checkpoint(fixture("odd.pth"), tmp_path / "out")
    assert sorted(done.skipped) == ["complex", "sparse"]
    check(tmp_path / "out")


def test_a_key_of_ones_own(tmp_path):
    checkpoint(fixture("timm.pth"), tmp_path / "out", key="state_dict")
    found, _ = safetensors_file.read(tmp_path / "out")
    assert not any(any(data) for _, _, data in found.values())
    checkpoint(fixture("rtdetr.pth"), tmp_path / "out", key="ema.module")
    check(tmp_path / "out")
    with pytest.raises(ConvertError, match="has no 'ema.models'; there are the dictionaries 'module'"):
        checkpoint(fixture("rtdetr.pth"), tmp_path / "out", key="ema.models")
    with pytest.raises(ConvertError, match="holds no tensors under 'ema'"):
        checkpoint(fixture("rtdetr.pth"), tmp_path / "out", key="ema")


def test_two_equal_candidates_are_not_guessed_between(tmp_path):
    arrays = {"w": np.zeros(2, "f4")}
    (tmp_path / "in").write_bytes(pickle.dumps({"one": arrays, "two": arrays}))
    with pytest.raises(ConvertError, match="holds tensors under 'one', 'two': say which with --key"):
        checkpoint(tmp_path / "in", tmp_path / "out")
    checkpoint(tmp_path / "in", tmp_path / "out", key="two")


def test_an_unknown_key_is_followed_where_it_is_the_only_one(tmp_path):
    (tmp_path / "in").write_bytes(pickle.dumps({"weights_of_mine": {"w": np.zeros(2, "f4")}, "epoch": 3}))
    assert checkpoint(tmp_path / "in", tmp_path / "out").key == "weights_of_mine"


# ----------------------------------------------------------------------------------------------------------------------
# The zip archive in forms that torch.save has on other machines

def repack(source: str, target, change=lambda name, data: data, stem="archive", **write) -> None:
    """Writes the entries of `source` again, as an archive of another name."""
    old = zipfile.ZipFile(source)
    prefix = old.namelist()[0].split("/")[0]
    with zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = change(name[len(prefix) + 1:], old.read(name))
            if data is not None:
                with new.open(zipfile.ZipInfo(f"{stem}/{name[len(prefix) + 1:]}"), "w", **write) as entry:
                    entry.write(data)


@pytest.mark.parametrize("write", [{}, {"force_zip64": True}])
def test_zip64_and_any_archive_name(tmp_path, write):
    repack(fixture("zip.pth"), tmp_path / "in", stem="a name of ten words, and then some", **write)
    checkpoint(tmp_path / "in", tmp_path / "out")
    check(tmp_path / "out")


def test_without_byteorder_and_version_as_older_torch_wrote(tmp_path):
    repack(fixture("zip.pth"), tmp_path / "in",
           lambda name, data: data if name == "data.pkl" or name.startswith("data/") else None)
    checkpoint(tmp_path / "in", tmp_path / "out")
    check(tmp_path / "out")


STORAGES = {"F64": (b"DoubleStorage", 8), "F32": (b"FloatStorage", 4), "F16": (b"HalfStorage", 2),
            "BF16": (b"BFloat16Storage", 2), "I64": (b"LongStorage", 8), "BOOL": (b"BoolStorage", 1)}


def test_big_endian(tmp_path):
    """Not even torch's own files of such machines are at hand: this one is written by hand."""
    program, entries = b"(d", {}
    for key, (name, (dtype, shape)) in enumerate(TENSORS.items()):
        storage, size = STORAGES[dtype]
        numbers = b"(" + b"".join(b"I%d\n" % n for n in shape) + b"t"
        steps = b"(" + b"".join(b"I%d\n" % int(np.prod(shape[i + 1:])) for i in range(len(shape))) + b"t"
        program += (b"V%s\nctorch._utils\n_rebuild_tensor_v2\n((S'storage'\nctorch\n%s\nS'%d'\nS'cpu'\nI%d\ntQI0\n"
                    % (name.encode(), storage, key, int(np.prod(shape)))) + numbers + steps + b"I00\nNtRs"
        data = raw(name)
        entries[f"b/data/{key}"] = b"".join(data[i:i + size][::-1] for i in range(0, len(data), size))
    with zipfile.ZipFile(tmp_path / "in", "w") as archive:
        for entry, data in {"b/data.pkl": program + b".", "b/byteorder": b"big", **entries}.items():
            archive.writestr(entry, data)
    checkpoint(tmp_path / "in", tmp_path / "out")
    check(tmp_path / "out")


def test_a_damaged_entry_is_named(tmp_path):
    data = bytearray(open(fixture("zip.pth"), "rb").read())
    at = data.index(raw("backbone.patch_embed.proj.weight"))
    data[at + 3] ^= 1
    (tmp_path / "in").write_bytes(data)
    with pytest.raises(ConvertError, match=r"tensor 'backbone.patch_embed.proj.weight': entry 'zip/data/\d+' is "
                                           "damaged: checksum"):
        checkpoint(tmp_path / "in", tmp_path / "out")
    assert os.listdir(tmp_path) == ["in"]


def test_a_missing_entry_is_named(tmp_path):
    repack(fixture("zip.pth"), tmp_path / "in", lambda name, data: None if name == "data/3" else data)
    with pytest.raises(ConvertError, match="has no entry 'archive/data/3'"):
        checkpoint(tmp_path / "in", tmp_path / "out")


def test_a_short_entry_is_named(tmp_path):
    repack(fixture("zip.pth"), tmp_path / "in", lambda name, data: data[:-1] if name == "data/0" else data)
    with pytest.raises(ConvertError, match="entry 'archive/data/0' has .* bytes, .* expected"):
        checkpoint(tmp_path / "in", tmp_path / "out")


def test_a_compressed_archive_says_what_to_do(tmp_path):
    old = zipfile.ZipFile(fixture("zip.pth"))
    with zipfile.ZipFile(tmp_path / "in", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(ConvertError, match="is compressed, torch never does: .*zip -0"):
        checkpoint(tmp_path / "in", tmp_path / "out")


# ----------------------------------------------------------------------------------------------------------------------
# Python 2 wrote the first model zoos: byte strings, not text

def test_arrays_of_python_2(tmp_path):
    def string(data: bytes) -> bytes:
        return b"T" + len(data).to_bytes(4, "little") + data

    array = values("backbone.layers.0.blocks.0.attn.proj.weight")
    program = (b"\x80\x02}" + string(b"blobs") + b"}" + string(b"w") + b"cnumpy.core.multiarray\n_reconstruct\n"
               b"(cnumpy\nndarray\nK\x00\x85U\x01btR(K\x01K\x04K\x03\x86cnumpy\ndtype\n(U\x02f4K\x00K\x01tR"
               b"(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89" + string(array.tobytes()) + b"tbss.")
    (tmp_path / "in").write_bytes(program)
    assert pickle.loads(program, encoding="latin1")["blobs"]["w"].tolist() == array.tolist()
    assert checkpoint(tmp_path / "in", tmp_path / "out").key == "blobs"
    assert safetensors_file.read(tmp_path / "out")[0] == {"w": ("F32", (4, 3), array.tobytes())}


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_large_arrays_stay_in_the_file_until_they_are_written(tmp_path, protocol):
    rng = np.random.default_rng(3)
    arrays = {
    name: rng.integers(
        0, 256, (300, 72), dtype=np.uint8).view(
            "<f4" if name < "c" else "u1") for name in "abcd"}
    arrays["b"] = np.asfortranarray(arrays["b"])
    arrays["e"] = arrays["a"].byteswap().view(">f4")
    (tmp_path / "in").write_bytes(pickle.dumps(arrays, protocol))
    checkpoint(tmp_path / "in", tmp_path / "out")
    found, _ = safetensors_file.read(tmp_path / "out")
    for name, array in arrays.items():
        assert found[name][2] == np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()


# ----------------------------------------------------------------------------------------------------------------------
# The command

def run(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "libswin", *map(str, arguments)],
                          capture_output=True, text=True, **options)


def test_the_command(tmp_path):
    shutil.copy(fixture("mmengine.pth"), tmp_path / "in.pth")
    done = run("convert", "in.pth", "out.safetensors", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("out.safetensors: 13 tensors, 0.0 MB, from 'state_dict', not 'ema_state_dict'\n"
                           "what it is: swin-dump --weights out.safetensors --info\n")
    assert run("convert", "in.pth", "a b", cwd=tmp_path).stdout.endswith(" swin-dump --weights 'a b' --info\n")
    check(tmp_path / "out.safetensors")
    assert os.stat(tmp_path / "out.safetensors").st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("content, message", [
    (None, "in.pth: No such file or directory"),
    (b"", "in.pth: is empty"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "in.pth: is a Git LFS pointer"),
    (b"<!DOCTYPE html><html>", "in.pth: is a web page or XML"),
    (b"\x08\0\0\0\0\0\0\0{}      ", "in.pth: is a safetensors file already: nothing to convert"),
    (b"\x89HDF\r\n\x1a\n" + bytes(600), "in.pth: is an HDF5 file"),
    (b"\x89PNG\r\n\x1a\n" + bytes(600), "in.pth: is a PNG picture, not a checkpoint: swin-dump, or"),
    (b"\xff\xd8\xff\xe0" + bytes(600), "in.pth: is a JPEG picture, not a checkpoint"),
    (b"PK\x03\x04" + bytes(60), "in.pth: is a damaged or truncated zip archive"),
    (b"\x93NUMPY" + bytes(100), "in.pth: is a single numpy array"),
    (bytes(257) + b"ustar" + bytes(300), "in.pth: is a tar archive"),
    (bytes(600), "in.pth: is no PyTorch, pickle or Paddle file: it begins with the bytes 00 00 00 00 00 00 00 00\n"),
    (b"#!/usr/bin/env python3\nimport os\n", "in.pth: is no PyTorch, pickle or Paddle file: it begins with '#!/usr"),
    (b"import os\n", "in.pth: is no PyTorch, pickle or Paddle file: it begins with 'import os'\n"),
    (b"class Net(Module):\n    pass\n", "in.pth: is no PyTorch, pickle or Paddle file: it begins with 'class Net"),
    (b"\n{}", "in.pth: is no PyTorch, pickle or Paddle file: it begins with the bytes 0a 7b 7d\n"),
    (b'{"model": [1, 2]}', "in.pth: is no PyTorch, pickle or Paddle file: it begins with '{\"model\": [1, 2]}'\n"),
    (b"\x80\x02}", "in.pth: truncated: 1 bytes wanted"),
    (b"\x80\x02}\xff.", "in.pth: no pickle, or a damaged one: byte 0xff at offset 3"),
    (pickle.dumps([1, 2]), "in.pth: holds no dictionary of tensors, but a list: there is nothing to convert\n"),
    (pickle.dumps(np.ones(3)), "in.pth: holds no dictionary of tensors, but a single tensor: there is nothing to"),
    (pickle.dumps(3.5, 2), "in.pth: holds no dictionary of tensors: there is nothing to convert\n"),
    (pickle.dumps({"a": {"b": 1}}), "in.pth: holds no tensors, neither at the top nor under 'a': there is nothing to"),
    (pickle.dumps({"epoch": 3}), "in.pth: holds no tensors: there is nothing to convert\n"),
    (b"\x80\x02cmy.code\nNet\n)\x81.", "in.pth: holds no tensors, but an object of the class my.code.Net: there is"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_what_cannot_be_converted_is_one_line(tmp_path, content, message):
    if content is not None:
        (tmp_path / "in.pth").write_bytes(content)
    done = run("convert", "in.pth", "out.safetensors", cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"libswin: {message}") and done.stderr.count("\n") == 1
    assert not (tmp_path / "out.safetensors").exists()


def test_a_target_that_cannot_be_written(tmp_path):
    os.mkdir(tmp_path / "directory")
    (tmp_path / "file").write_text("in the way")
    for target, said in (("missing/out", "missing: No such file or directory"),
                         ("directory", "directory: Is a directory"), ("file/out", "file: Not a directory")):
        done = run("convert", fixture("zip.pth"), target, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"libswin: {said}\n")
    assert sorted(os.listdir(tmp_path)) == ["directory", "file"]
    shutil.copy(fixture("zip.pth"), tmp_path / "in.pth")
    done = run("convert", tmp_path / "in.pth", tmp_path / "in.pth")
    assert done.returncode == 1 and "would be overwritten by its own conversion" in done.stderr
    assert (tmp_path / "in.pth").read_bytes() == open(fixture("zip.pth"), "rb").read()


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
def test_pickles_of_every_protocol_are_known_by_their_beginning(tmp_path, protocol, kind):
    (tmp_path / "in").write_bytes(pickle.dumps(kind(w=np.ones(3, "f4")), protocol))
    assert checkpoint(tmp_path / "in", tmp_path / "out").tensors == 1
    parts = (0x1950a86a20f9469cfc6c, 1001, {"little_endian": True}, kind(), [])  # torch's older stream
    (tmp_path / "in").write_bytes(b"".join(pickle.dumps(part, protocol) for part in parts))
    with pytest.raises(ConvertError, match="holds no tensors: there is nothing"):
        checkpoint(tmp_path / "in", tmp_path / "out")


def test_a_failure_leaves_the_older_target(tmp_path):
    (tmp_path / "out").write_text("older")
    (tmp_path / "in").write_bytes(open(fixture("stream.pth"), "rb").read()[:-1])
    with pytest.raises(ConvertError, match="truncated"):
        checkpoint(tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "older"
    assert sorted(os.listdir(tmp_path)) == ["in", "out"]


def test_the_command_without_engine_and_torch(tmp_path):
    """`convert` is for machines that have neither."""
    program = ("import sys; sys.modules['torch'] = None\n"
               "from libswin.__main__ import main; sys.exit(main(sys.argv[1:]))")
    done = subprocess.run([sys.executable, "-c", program, "convert", fixture("zip.pth"), tmp_path / "out"],
                          env={**os.environ, "LIBSWIN_PATH": "/nowhere"})
    assert done.returncode == 0
    check(tmp_path / "out")


def test_memory_does_not_grow_with_the_file(tmp_path):
    """48 tensors of 4 MB: what is in memory at once is one of them, not the file."""
    with open(tmp_path / "in", "wb") as file:
        pickle.dump({f"t{i}": np.full(1 << 20, i, "f4") for i in range(48)}, file, 4)
    program = ("import resource, sys; from libswin.convert import checkpoint; checkpoint(sys.argv[1], sys.argv[3])\n"
               "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; checkpoint(sys.argv[2], sys.argv[3])\n"
               "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)")
    done = subprocess.run([sys.executable, "-c", program, fixture("arrays_p5.pkl"), tmp_path / "in",
                           tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 5 * 4096  # KB: the bytes, the array, a copy, and slack, of a file of 192 MB
