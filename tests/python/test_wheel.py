# SPDX-License-Identifier: MIT
"""pip install ./bindings/python, with a library and without; needs pip, setuptools and wheel, and no network."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

for needed, least in (("pip", 21), ("setuptools", 64), ("wheel", 0)):  # what pyproject.toml asks for
    try:
        found = int(importlib.metadata.version(needed).split(".")[0])
    except importlib.metadata.PackageNotFoundError:
        found = -1
    if found < least:
        pytest.skip(f"needs {needed} {least} or later", allow_module_level=True)

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILT = os.environ.get("LIBSWIN_PATH", "")


@pytest.fixture
def tree(tmp_path):
    """A copy of what a wheel is made of: building writes beside its sources."""
    shutil.copytree(os.path.join(ROOT, "bindings", "python"), tmp_path / "swin" / "bindings" / "python",
                    ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    shutil.copytree(os.path.join(ROOT, "include"), tmp_path / "swin" / "include")
    return tmp_path / "swin"


def environment(**extra):
    kept = {key: value for key, value in os.environ.items()
            if key not in ("LIBSWIN_PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", **extra}


def pip(*arguments, **extra):
    return subprocess.run([sys.executable, "-m", "pip", *arguments], env=environment(**extra), capture_output=True,
                          text=True)


def build(tree, tmp_path, **extra):
    return pip("wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", tmp_path / "wheels",
               tree / "bindings" / "python", **extra)


def wheel(tree, tmp_path, **extra) -> str:
    done = build(tree, tmp_path, **extra)
    assert done.returncode == 0, done.stdout + done.stderr
    (name,) = os.listdir(tmp_path / "wheels")
    return str(tmp_path / "wheels" / name)


def contents(path) -> set:
    return {name for name in zipfile.ZipFile(path).namelist() if not name.endswith("/")}


def sources() -> set:
    package = os.path.join(ROOT, "bindings", "python")
    return {os.path.relpath(os.path.join(directory, name), package)
            for directory, _, names in os.walk(os.path.join(package, "libswin"))
            for name in names if name.endswith((".py", ".typed"))}


@pytest.mark.skipif(not os.path.isfile(BUILT), reason="LIBSWIN_PATH is not set: run through meson")
def test_a_wheel_with_the_library(tree, tmp_path):
    made = wheel(tree, tmp_path, LIBSWIN_PATH=BUILT)
    assert re.fullmatch(r"libswin-\d+\.\d+\.\d+-py3-none-linux_\w+\.whl", os.path.basename(made))
    assert sources() | {"libswin/libswin.so.0"} <= contents(made)
    done = pip("install", "--no-deps", "--no-index", "--target", tmp_path / "site", made)
    assert done.returncode == 0, done.stderr
    program = ("import libswin, numpy; from importlib.metadata import version\n"
               "assert libswin.library_version() == version('libswin')\n"
               "model = libswin.random(libswin.Config(32, (1,), (1,)))\n"
               "print(model(numpy.zeros((9, 9, 3), 'u1'))[0].shape, libswin.prototypes.library()._name)")
    done = subprocess.run([sys.executable, "-c", program], env=environment(PYTHONPATH=str(tmp_path / "site")),
                          capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == f"(1, 32, 3, 3) {tmp_path}/site/libswin/libswin.so.0\n", done.stderr


@pytest.mark.skipif(not os.path.isfile(BUILT), reason="LIBSWIN_PATH is not set: run through meson")
def test_the_library_of_a_build_directory_is_found(tree, tmp_path):
    os.makedirs(tree / "build" / "lib")
    shutil.copy(BUILT, tree / "build" / "lib" / "libswin.so.0")
    assert "libswin/libswin.so.0" in contents(wheel(tree, tmp_path))


def test_a_wheel_without_the_library(tree, tmp_path):
    made = wheel(tree, tmp_path)
    assert re.fullmatch(r"libswin-\d+\.\d+\.\d+-py3-none-any\.whl", os.path.basename(made))
    assert sources() <= contents(made) and not any(".so" in name for name in contents(made))


def test_a_library_that_is_not_there(tree, tmp_path):
    done = build(tree, tmp_path, LIBSWIN_PATH="/nowhere/x.so")
    assert done.returncode != 0
    assert "LIBSWIN_PATH is /nowhere/x.so, where there is no library" in done.stdout + done.stderr
