# SPDX-License-Identifier: MIT
"""python3 -m libswin info and dump; convert has tests of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import libswin

WEIGHTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "v1-detection.safetensors")


def run(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "libswin", *map(str, arguments)],
                          capture_output=True, text=True, **options)


def test_info():
    done = run("info", WEIGHTS)
    assert (done.returncode, done.stderr) == (0, "")
    model = libswin.load(WEIGHTS)
    for part in (WEIGHTS, "Swin Transformer V1", model.info.dialect, "detection: ", "4x4",
                 f"{model.info.used_count} used, {model.info.ignored_count} ignored, 0 foreign, 0 unknown"):
        assert part in done.stdout
    for name in model.tensor_names("ignored"):
        assert name in done.stdout


def test_info_of_v2_tells_the_windows_of_pre_training():
    file = os.path.join(os.path.dirname(WEIGHTS), "v2-microsoft.safetensors")
    said = run("info", file, "--pretrained-window", "3,3,2").stdout
    assert "window  pre-trained  level norm\n" in said and "     4x4          2x2  no\n" in said
    assert "     4x4            -  no\n" in run("info", file).stdout
    assert "pre-trained" not in run("info", WEIGHTS).stdout


def test_info_for_machines():
    said = json.loads(run("info", WEIGHTS, "--json", "--lineage", "microsoft", "--out-norm", "off").stdout)
    model = libswin.load(WEIGHTS, lineage="microsoft", out_norm="off")
    assert said["lineage"] == "microsoft" and said["out_norm_levels"] == []
    assert said["parameters"] > 0 and said["tensors"]["used"] == model.info.used_count
    assert said["tensors"]["ignored_names"] == model.tensor_names("ignored")
    assert said["window"] == [list(pair) for pair in model.config.window]


def test_windows_and_sizes_are_reported():
    for arguments, part in (
            ([], "windows       from the sizes of the position bias tables\n"),
            (["--window", "8"], "from the caller; position biases resized from 4x4 to 8x8\n"),
            (["--window", "3x5"], "from the caller; position biases resized from 4x4 to 3x5\n"),
            (["--window", "4,3x5,4"], "from the caller; position biases resized from 4x4 to 3x5\n"),
            (["--lineage", "timm"], "; image size unknown, so each image's own limits them (--image-size)\n"),
            (["--lineage", "timm", "--image-size", "32x64"], "made for      32 x 64 pixels\n")):
        done = run("info", WEIGHTS, *arguments)
        assert (done.returncode, done.stderr) == (0, "") and part in done.stdout, arguments


def test_a_resized_window_is_said(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((8, 9, 3), np.uint8))
    done = run("dump", "-w", WEIGHTS, "--window", "8", "a.npy", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        0, f"libswin: {WEIGHTS}: position biases resized from 4x4 to 8x8, as --window asks: the maps are others than "
           "with the file's own window\n")


def test_messages_are_those_of_the_tool(tmp_path):
    """Paths are named as they were given."""
    (tmp_path / "a b.pth").write_bytes(b"PK\3\4 and more")
    os.mkdir(tmp_path / "models")
    (tmp_path / "models" / "model.safetensors").write_bytes(b"")
    for name, message in (
            ("a b.pth", "a b.pth is a zip archive, as torch.save() writes it, not a safetensors file; convert it: "
                        "python3 -m libswin convert 'a b.pth' 'a b.safetensors'"),
            ("models", "models is a directory, expected a file; the checkpoint in it is models/model.safetensors")):
        done = run("info", name, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (1, f"libswin: {message}\n")


def test_dump_of_one_image(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (33, 50, 3), np.uint8)
    np.save(tmp_path / "photo.npy", image)
    done = run("dump", "-w", WEIGHTS, "photo.npy", "-o", "out", "--levels", "0,c4", "--layout", "nhwc",
               "--pad-divisor", 32, "--precision", "f32", "--mean", "1,2,3", "--std", "4,5,6", "--bgr", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(os.listdir(tmp_path / "out")) == ["c2.npy", "c4.npy", "summary.json"]
    wanted = libswin.load(WEIGHTS)(image, levels=[0, 2], layout="nhwc", canvas=32, precision="f32", mean=[1, 2, 3],
                                   std=[4, 5, 6], bgr=True)
    for name, values in zip(("c2.npy", "c4.npy"), wanted):
        assert np.array_equal(np.load(tmp_path / "out" / name), values)
    summary = json.load(open(tmp_path / "out" / "summary.json"))
    assert [level["shape"] for level in summary["levels"]] == [list(values.shape) for values in wanted]
    assert summary["engine"]["precision"] == "f32" and summary["layout"] == "NHWC"


def test_dump_goes_on_past_a_bad_image(tmp_path):
    for name, array in (("a.npy", np.zeros((8, 9, 3), np.uint8)), ("b.npy", np.zeros((8, 9), np.uint8)),
                        ("c.npy", np.zeros((3, 8, 9), np.float32))):
        np.save(tmp_path / name, array)
    os.mkdir(tmp_path / "sub")
    np.save(tmp_path / "sub" / "a.npy", np.zeros((8, 9, 3), np.uint8))
    (tmp_path / "d.npy").write_text("no array")
    done = run("dump", "-w", WEIGHTS, "a.npy", "b.npy", "c.npy", "d.npy", "e.npy", "sub/a.npy", cwd=tmp_path)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 4 and lines[0].startswith("libswin: b.npy: an image is uint8 [8, 9], expected")
    assert lines[1].startswith(
        "libswin: d.npy: is no array") and lines[2] == "libswin: e.npy: No such file or directory"
    assert lines[3] == "libswin: 3 of 6 images failed: b.npy, d.npy, e.npy"
    assert sorted(os.listdir(tmp_path / "swin-dump")) == ["a", "a-2", "c"]


def test_dump_of_directories(tmp_path):
    """In the order of their names; what is no picture is said, not passed over."""
    for name in ("photos/b.npy", "photos/a.npy", "photos/sub/c.npy", "photos/.hidden.npy", "more/a.npy", "z.npy"):
        os.makedirs(tmp_path / os.path.dirname(name), exist_ok=True)
        np.save(tmp_path / name, np.zeros((8, 9, 3), np.uint8))
    (tmp_path / "photos" / "notes.txt").write_text("no picture")
    done = run("dump", "-w", WEIGHTS, "photos", "z.npy", "more/", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        0, "libswin: passed over 1 file without the name of a picture (photos/notes.txt) and 1 directory in a "
           "directory\n")
    assert [line.split(": ")[0] for line in done.stdout.splitlines()] == [
        "photos/a.npy", "photos/b.npy", "z.npy", "more/a.npy"]
    assert sorted(os.listdir(tmp_path / "swin-dump")) == ["a", "a-2", "b", "z"]

    os.mkdir(tmp_path / "none")
    done = run("dump", "-w", WEIGHTS, "none", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "libswin: none: there is no picture in it\n")
    done = run("dump", "-w", WEIGHTS, "more", "-o", "one", cwd=tmp_path)  # a directory by itself, of one
    assert done.returncode == 0 and os.listdir(tmp_path / "one") == ["a"]


def test_dump_names_the_file_whatever_was_wrong(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((8, 9, 3), np.uint8))
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "file").write_text("in the way")
    done = run("dump", "-w", WEIGHTS, "empty.npy", cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("libswin: empty.npy: is no array: ")
    done = run("dump", "-w", WEIGHTS, "a.npy", "-o", "file/out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "libswin: a.npy: file/out: Not a directory\n")


def test_pictures_in_a_directory(tmp_path):
    """Of every kind that Pillow reads, and broken ones by their names."""
    Image = pytest.importorskip("PIL.Image")
    os.mkdir(tmp_path / "in")
    for name in ("c.png", "b.JPG", "a.gif"):
        Image.fromarray(np.full((40, 50, 3), 90, np.uint8)).save(tmp_path / "in" / name)
    data = (tmp_path / "in" / "c.png").read_bytes()
    (tmp_path / "in" / "short.png").write_bytes(data[:-40])
    (tmp_path / "in" / "wrong.png").write_bytes(data[:30] + b"x" + data[31:])
    (tmp_path / "in" / "text.jpg").write_text("no picture")
    (tmp_path / "in" / "labels.json").write_text("{}")
    done = run("dump", "-w", WEIGHTS, "in", cwd=tmp_path)
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and len(lines) == 5 and "Traceback" not in done.stderr
    assert lines[0].startswith("libswin: in/short.png: cannot be read by Pillow: ")
    assert lines[1] == "libswin: in/text.jpg: is no image that Pillow knows"
    assert lines[2].startswith("libswin: in/wrong.png: ")
    assert lines[3] == "libswin: passed over 1 file without the name of a picture (in/labels.json)"
    assert lines[4] == "libswin: 3 of 6 images failed: in/short.png, in/text.jpg, in/wrong.png"
    assert sorted(os.listdir(tmp_path / "swin-dump")) == ["a", "b", "c"]


def test_progress_is_shown_on_a_terminal_alone(tmp_path):
    """Rate and time left on a terminal, wiped in the end; plain lines otherwise."""
    import pty

    for name in ("a.npy", "b.npy", "c.npy"):
        np.save(tmp_path / name, np.zeros((8, 9, 3), np.uint8))
    (tmp_path / "b.npy").write_text("no array")
    command = [sys.executable, "-m", "libswin", "dump", "-w", WEIGHTS, "a.npy", "b.npy", "c.npy"]
    plain = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "images/s" not in plain.stdout + plain.stderr and "\x1b" not in plain.stdout + plain.stderr
    assert [line.split(":")[0] for line in plain.stdout.splitlines()] == ["a.npy", "c.npy"]

    try:
        here, there = pty.openpty()
    except OSError as error:
        pytest.skip(f"needs a terminal: {error}")
    process = subprocess.Popen(command, stdout=there, stderr=there, cwd=tmp_path)
    os.close(there)
    seen = b""
    while True:
        try:
            part = os.read(here, 65536)
        except OSError:  # the other end is closed
            part = b""
        if not part:
            break
        seen += part
    os.close(here)
    assert process.wait() == 1
    drawn = seen.decode().replace("\r\n", "\n").split("\x1b[K")
    bars = [one.split("\r")[-1] for one in drawn if "[#" in one or "[-" in one]
    assert len(bars) == 4 and bars[0].endswith("] 0/3")
    assert " 3/3 " in bars[3] and "images/s  0:00 left  c.npy" in bars[3]
    assert all("images/s" in one and " left" in one for one in bars[1:])
    lines = [line for one in drawn for line in one.split("\n") if line and "\r" not in line and "[" not in line[:1]]
    assert [line.split(": ")[0] for line in lines] == ["a.npy", "libswin", "c.npy", "libswin"]


def test_dump_of_a_picture(tmp_path):
    try:
        from PIL import Image
    except ImportError:
        (tmp_path / "x.png").write_bytes(b"")
        done = run("dump", "-w", WEIGHTS, "x.png", cwd=tmp_path)
        assert done.returncode == 1 and "takes Pillow (pip install pillow)" in done.stderr
        return
    image = np.random.default_rng(0).integers(0, 256, (33, 50, 3), np.uint8)
    Image.fromarray(image).save(tmp_path / "x.png")
    assert run("dump", "-w", WEIGHTS, "x.png", "--precision", "f32", cwd=tmp_path).returncode == 0
    assert np.array_equal(np.load(tmp_path / "swin-dump" / "c2.npy"), libswin.load(WEIGHTS)(image, precision="f32")[0])
    (tmp_path / "y.png").write_bytes(b"no picture")
    assert "libswin: y.png: is no image that Pillow knows" in run("dump", "-w", WEIGHTS, "y.png", cwd=tmp_path).stderr


@pytest.mark.parametrize("arguments, code, message", [
    ([], 2, "the following arguments are required: COMMAND"),
    (["info"], 2, "required: FILE.safetensors"),
    (["info", "/nowhere"], 1, "libswin: cannot open /nowhere: No such file or directory\n"),
    (["info", WEIGHTS, "--window", "a"], 2,
     "argument --window: 'a' is no window in tokens, such as 7 or 7x12, nor one for each stage: 16,16,16,8"),
    (["info", WEIGHTS, "--window", "7x"], 2, "'7x' is no window"),
    (["info", WEIGHTS, "--window", "0"], 2, "'0' is no window"),
    (["info", WEIGHTS, "--window", "7,7,7,7,7,7"], 2, "is no window"),
    (["info", WEIGHTS, "--image-size", "224"], 2, "'224' is no HEIGHTxWIDTH in pixels, such as 224x224"),
    (["info", WEIGHTS, "--window", "7,7"], 1, "libswin: window is [7, 7], of 2 stages, but the model has 3 stages\n"),
    (["info", WEIGHTS, "--window", "7,7,7"], 0, ""),
    (["info", WEIGHTS.replace("v1-detection", "v2-timm")], 1, "no published file name; give it (--window)\n"),
    (["dump", "-w", WEIGHTS, "--levels", "0,a", "x.npy"], 2,
     "--levels: '0,a' are none of 0,1,2,3 or c2,c3,c4,c5 with commas between"),
    (["dump", "x.npy"], 2, "required: -w/--weights"),
    (["dump", "-w", WEIGHTS, "--mean", "1,x,3", "x.npy"], 2, "--mean"),
])
def test_wrong_usage(arguments, code, message):
    done = run(*arguments)
    assert done.returncode == code and message in done.stderr


def test_version():
    done = run("--version")
    said = f"libswin {libswin.__version__} for Python, libswin.so {libswin.library_version()}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    done = run("--version", env={**os.environ, "LIBSWIN_PATH": "/nowhere"})
    assert done.returncode == 1 and done.stderr.startswith("libswin: libswin.so was not found")


def test_the_library_is_missing():
    done = run("info", WEIGHTS, env={**os.environ, "LIBSWIN_PATH": "/nowhere"})
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("libswin: libswin.so was not found; tried LIBSWIN_PATH (/nowhere)")
