# SPDX-License-Identifier: MIT
"""What swin-dump and numpy say to each other: .npy files there and back."""
import io
import json
import os
import struct
import subprocess
import zlib

import numpy as np
import pytest

PROGRAM = os.environ["SWIN_DUMP"]
CHECKPOINT = os.environ["SWIN_CHECKPOINT"]
SIZES = {"c2": (8, 9, 14), "c3": (16, 5, 7), "c4": (32, 3, 4)}


def write_png(path, pixels):
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)


def run(*arguments, code=0):
    command = [PROGRAM, "-q", "-w", CHECKPOINT, "--precision", "f32", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture(scope="module")
def dumped(tmp_path_factory):
    place = tmp_path_factory.mktemp("dump")
    image = place / "image.png"
    write_png(image, np.random.default_rng(1).integers(0, 256, (35, 54, 3), dtype=np.uint8))
    for layout in "nchw", "nhwc":
        run(image, "--npy", "--json", "--layout", layout, "-o", place / layout)
    return place


@pytest.mark.parametrize("name", SIZES)
def test_numpy_reads_the_maps(dumped, name):
    channels, height, width = SIZES[name]
    nchw = np.load(dumped / "nchw" / f"{name}.npy", mmap_mode="r")
    nhwc = np.load(dumped / "nhwc" / f"{name}.npy", mmap_mode="r")
    assert nchw.dtype == np.dtype("<f4") and nchw.flags.c_contiguous
    assert nchw.shape == (1, channels, height, width)
    assert nhwc.shape == (1, height, width, channels)
    assert np.isfinite(nchw).all()
    assert np.array_equal(nchw.transpose(0, 2, 3, 1), nhwc)


@pytest.mark.parametrize("name", SIZES)
def test_the_bytes_are_those_of_numpy_save(dumped, name):
    for layout in "nchw", "nhwc":
        path = dumped / layout / f"{name}.npy"
        again = io.BytesIO()
        np.save(again, np.load(path))
        assert path.read_bytes() == again.getvalue()
        header_end = path.read_bytes().index(b"\n") + 1
        assert header_end % 64 == 0


def test_the_summary_tells_what_numpy_finds(dumped):
    summary = json.loads((dumped / "nchw" / "summary.json").read_text())
    assert [level["name"] for level in summary["levels"]] == list(SIZES)
    for level in summary["levels"]:
        array = np.load(dumped / "nchw" / f"{level['name']}.npy").astype(np.float64)
        assert tuple(level["shape"]) == array.shape
        assert level["min"] == pytest.approx(array.min(), rel=1e-6)
        assert level["max"] == pytest.approx(array.max(), rel=1e-6)
        assert level["mean"] == pytest.approx(array.mean(), rel=1e-6, abs=1e-9)
        assert level["std"] == pytest.approx(array.std(), rel=1e-6)
        assert f"{level['name']}.npy" in level["files"]


@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
@pytest.mark.parametrize("batch", [True, False])
def test_verify_takes_what_numpy_writes(dumped, tmp_path, dtype, batch):
    for name in SIZES:
        array = np.load(dumped / "nchw" / f"{name}.npy").astype(dtype)
        np.save(tmp_path / f"{name}.npy", array if batch else array[0])
    run(dumped / "image.png", "--verify", tmp_path)


@pytest.mark.parametrize("change, message", [
    (lambda array: array * (1 + 2e-5), "c3 beyond the f32 tolerance"),
    (lambda array: array.astype("f2"), "holds '<f2'"),
    (lambda array: array.astype(">f4"), "holds '>f4'"),
    (lambda array: np.asfortranarray(array), "is in Fortran order"),
    (lambda array: array[:, :-1], "has shape (1, 15, 5, 7)"),
    (lambda array: np.where(array == array.max(), np.nan, array), "c3 beyond the f32 tolerance"),
])
def test_verify_refuses(dumped, tmp_path, change, message):
    np.save(tmp_path / "c3.npy", change(np.load(dumped / "nchw" / "c3.npy")))
    done = run(dumped / "image.png", "--levels", "1", "--verify", tmp_path, code=1)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
