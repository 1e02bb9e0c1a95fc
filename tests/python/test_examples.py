# SPDX-License-Identifier: MIT
"""The examples of the docstrings and of both READMEs, and the commands of both, as they stand."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import pickle
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import libswin

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CHECKPOINT = os.path.join(ROOT, "tests", "golden", "v1-four.safetensors")
READMES = (os.path.join(ROOT, "README.md"), os.path.join(ROOT, "bindings", "python", "README.md"))


def text_of(path) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def modules():
    names = [name for _, name, _ in pkgutil.walk_packages(libswin.__path__, "libswin.")]
    return ["libswin", *(name for name in names if not name.endswith("__main__"))]


@pytest.mark.parametrize("name", modules())
def test_of_docstrings(name):
    if name in ("libswin.backbone", "libswin.uncompiled"):
        pytest.importorskip("torch")
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(module)
    assert not failed
    assert tried == len(re.findall(r"^ *>>> ", text_of(module.__file__), re.M))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with what the examples name."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(CHECKPOINT, "swin_tiny.safetensors")
    return tmp_path


def run(code: str, **names):
    exec(compile(textwrap.dedent(code), "example", "exec"), names)
    return names


def blocks(readme=READMES[1], count=4) -> list[str]:
    found = re.findall(r"^```python\n(.*?)^```", text_of(readme), re.M | re.S)
    assert len(found) == count
    return found


SHAPES = [(1, 4, 40, 60), (1, 8, 20, 30), (1, 16, 10, 15), (1, 32, 5, 8)]
IMAGE = np.zeros((160, 240, 3), np.uint8)


def test_of_the_package(here):
    (example,) = re.findall(r"^    import libswin\n(?:    .*\n)+", libswin.__doc__, re.M)
    assert [m.shape for m in run(example, image=IMAGE)["maps"]] == SHAPES


def test_of_the_readmes(here):
    for example in (blocks()[0], *blocks(READMES[0], 1)):
        assert [m.shape for m in run(example, image=IMAGE)["maps"]] == SHAPES


def test_of_precisions(here, capsys):
    image = np.random.default_rng(0).integers(0, 256, IMAGE.shape, np.uint8)
    made = run(blocks()[1], libswin=libswin, image=image)
    assert capsys.readouterr().out == "f32\n"
    for name, precision, bound in (("maps", "f32", 1e-5), ("fast", "bf16", 1.5e-2)):
        wanted = libswin.load("swin_tiny.safetensors")(image, precision=precision)
        for found, same, exact in zip(made[name], wanted, made["maps"]):
            assert np.array_equal(found, same) and np.linalg.norm(found - exact) <= bound * np.linalg.norm(exact)


@pytest.mark.parametrize("text", [*map(text_of, READMES), libswin.Model.__call__.__doc__], ids=range(3))
def test_pictures_of_pillow_are_to_be_rgb(text):
    """Wherever they are said to go in."""
    said = [line for line in text.splitlines() if re.search(r"\bPIL\b", line)]
    assert said and all("RGB" in line and '.convert("RGB")' in line for line in said)


def test_of_attention():
    model = libswin.random(libswin.Config(32, (2, 2, 6, 2), (1, 2, 4, 8)))
    assert run(blocks()[2], model=model, image=IMAGE)["seen"].weights.shape == (10, 15)


def test_in_a_detector(here):
    torch = pytest.importorskip("torch")
    detector, kinds = torch.nn.Module(), []
    for line in blocks()[3].splitlines():
        run(line, libswin=libswin, detector=detector)
        maps = detector.backbone(torch.zeros(1, 3, 32, 32))
        kinds.append("tuple" if isinstance(maps, tuple) else ",".join(maps))
    assert kinds == ["tuple", "res2,res3,res4,res5", "p0,p1,p2,p3"]


def commands() -> list[str]:
    """Every line that calls the package as it is, without its comment; examples.sh runs the one with PYTHONPATH."""
    lines = [line.split(" #")[0].strip() for path in READMES for line in text_of(path).splitlines()]
    return [line for line in lines if line.startswith("python3 -m libswin ")]


def arrays(path) -> dict[str, np.ndarray]:
    """The tensors of a file of F32, F16 or BF16."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        body, found = file.read(), {}
    for name, entry in header.items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            if entry["dtype"] == "BF16":
                values = (np.frombuffer(body[first:last], "<u2").astype("<u4") << 16).view("<f4")
            else:
                values = np.frombuffer(body[first:last], {"F32": "<f4", "F16": "<f2", "I64": "<i8"}[entry["dtype"]])
            found[name] = values.reshape(entry["shape"])
    return found


def test_of_the_command_line(here):
    tensors = arrays(CHECKPOINT)
    with open("swin_tiny.pth", "wb") as file:
        pickle.dump({"model": tensors}, file, protocol=2)
    try:
        from PIL import Image
        Image.fromarray(IMAGE).save("photo.jpg")
        photo = "photo.jpg"
    except ImportError:
        np.save("photo.npy", IMAGE)
        photo = "photo.npy"
    wanted = [line.split()[3] for line in commands()]
    assert wanted == ["convert", "convert", "info", "dump"]
    for line in commands():
        typed = [photo if word == "photo.jpg" else word for word in shlex.split(line)]
        done = subprocess.run([sys.executable, *typed[1:]], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), line
    assert [np.load(f"swin-dump/c{level + 2}.npy").shape for level in range(4)] == SHAPES
