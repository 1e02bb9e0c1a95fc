# SPDX-License-Identifier: MIT
"""Writing that fails or is stopped leaves nothing behind, and what was there before as it was."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import numpy as np
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
WEIGHTS = os.path.join(HERE, "..", "golden", "v1-detection.safetensors")
CHECKPOINT = os.path.join(HERE, "checkpoints", "timm.pth")


def limited(size: int):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def run(*arguments, size: int | None = None, prologue: str = "pass"):
    code = f"import runpy, sys; {prologue}; sys.argv[0] = 'libswin'; runpy.run_module('libswin', run_name='__main__')"
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True,
                          preexec_fn=None if size is None else limited(size))


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "image.npy"
    np.save(path, np.zeros((64, 64, 3), np.uint8))
    return path


@pytest.mark.parametrize("size", [0, 100, 1000])
def test_convert_to_a_full_disk(tmp_path, size):
    (tmp_path / "old.safetensors").write_bytes(b"old")
    for name in ("new.safetensors", "old.safetensors"):
        done = run("convert", CHECKPOINT, tmp_path / name, size=size)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
        assert os.listdir(tmp_path) == ["old.safetensors"]
    assert (tmp_path / "old.safetensors").read_bytes() == b"old"


@pytest.mark.parametrize("size", [0, 100, 5000])
def test_dump_to_a_full_disk(tmp_path, image, size):
    (tmp_path / "out").mkdir()
    done = run("dump", "-w", WEIGHTS, "-o", tmp_path / "out", image, size=size)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    for name in os.listdir(tmp_path / "out"):
        assert np.load(tmp_path / "out" / name).size > 0  # those that fitted are whole


@pytest.mark.parametrize("number, code", [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_stopped_just_before_the_end(tmp_path, number, code):
    done = run("convert", CHECKPOINT, tmp_path / "new.safetensors",
               prologue="import os, signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); "  # nohup's
                        f"os.replace = lambda *names: signal.raise_signal(signal.{number})")
    assert done.returncode == code, done.stderr
    assert os.listdir(tmp_path) == []


def test_the_same_is_written_where_nothing_stops_it(tmp_path, image):
    assert run("convert", CHECKPOINT, tmp_path / "new.safetensors").returncode == 0
    assert run("dump", "-w", WEIGHTS, "-o", tmp_path / "out", image).returncode == 0
    assert sorted(os.listdir(tmp_path / "out")) == ["c2.npy", "c3.npy", "c4.npy", "summary.json"]
