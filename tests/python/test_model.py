# SPDX-License-Identifier: MIT
"""What a user does with a model: every kind of image in, maps out, and errors that say what was wrong."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import pickle
import re
import warnings

import numpy as np
import pytest

import libswin
from libswin.convert import checkpoint

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
MEAN, STD = np.float32([123.675, 116.28, 103.53]), np.float32([58.395, 57.12, 57.375])
SMALL = libswin.Config(embed_dim=32, depths=(2, 2, 1), heads=(1, 2, 4), window=4)


@pytest.fixture(scope="module")
def model():
    return libswin.random(SMALL, seed=3)


def image(height=61, width=90, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def same(one, other) -> bool:
    return len(one) == len(other) and all(a.shape == b.shape and np.array_equal(a, b) for a, b in zip(one, other))


def near(one, other) -> bool:
    """Equal but for the rounding of the normalisation: 1e-6 relative in, amplified by a few blocks."""
    return all(np.linalg.norm(a - b) <= 1e-5 * np.linalg.norm(b) for a, b in zip(one, other))


# ----------------------------------------------------------------------------------------------------------------------
# Images

def test_shapes_and_types(model):
    maps = model(image())
    assert [m.shape for m in maps] == [(1, 32, 16, 23), (1, 64, 8, 12), (1, 128, 4, 6)]
    assert all(m.dtype == np.float32 and m.flags.c_contiguous and np.isfinite(m).all() for m in maps)
    assert [(s.channels, s.height, s.width) for s in model.output_shapes(61, 90)] == [m.shape[1:] for m in maps]
    assert [(s.level, s.stride, s.normed) for s in model.output_shapes(
        61, 90)] == [(0, 4, False), (1, 8, False), (2, 16, False)]


def test_float_images_are_taken_as_they_are(model):
    pixels = image()
    planar = np.ascontiguousarray(((pixels - MEAN) / STD).transpose(2, 0, 1), np.float32)
    assert near(model(planar, precision="f32"), model(pixels, precision="f32"))
    assert same(model(planar[None]), model(planar))


def test_mean_and_std(model):
    pixels = image()
    planar = ((pixels - np.float32([1, 2, 3])) / np.float32([4, 5, 6])).transpose(2, 0, 1).astype(np.float32)
    assert near(model(pixels, mean=[1, 2, 3], std=(4, 5, 6), precision="f32"), model(planar, precision="f32"))
    assert same(model(pixels, mean=MEAN, std=STD), model(pixels))


def test_channel_order(model):
    pixels = image()
    swapped = np.ascontiguousarray(pixels[..., ::-1])
    assert same(model(swapped, bgr=True), model(pixels))
    assert not same(model(swapped), model(pixels))


class Watched:
    """Shares the memory of an array through one protocol alone."""

    def __init__(self, array, protocol):
        self.taken = 0
        if protocol == "array_interface":
            type(self).__array_interface__ = property(lambda self: self.note(array).__array_interface__)
        elif protocol == "array":
            self.__class__ = type("Arrays", (Watched,), {"__array__": lambda self, dtype=None: self.note(array)})
        else:
            self.__class__ = type("Capsules", (Watched,), {
                "__dlpack__": lambda self, **options: self.note(array).__dlpack__(),
                "__dlpack_device__": lambda self: array.__dlpack_device__()})

    def note(self, array):
        self.taken += 1
        return array


@pytest.mark.parametrize("protocol", ["array", "dlpack", "array_interface"])
def test_everything_that_shares_its_memory_is_an_image(model, protocol):
    pixels = image()
    watched = Watched(pixels, protocol)
    assert same(model(watched), model(pixels))
    assert watched.taken


def test_pictures_of_pillow(model):
    Image = pytest.importorskip("PIL.Image")
    pixels = image()
    assert same(model(Image.fromarray(pixels)), model(pixels))
    assert same(model([Image.fromarray(pixels), pixels])[0], model(pixels))
    for mode in ("L", "RGBA", "P"):
        with pytest.raises(libswin.ArgumentError, match="gray, palette and alpha are the reader's job"):
            model(Image.fromarray(pixels).convert(mode))


def test_memory_of_other_devices(model):
    class Tensor:
        def __dlpack__(self):
            raise AssertionError("asked for")

        def __dlpack_device__(self):
            return 2, 0  # CUDA

    with pytest.raises(libswin.ArgumentError, match=r"not in the CPU's memory: move it there first.*\.cpu\(\)"):
        model(Tensor())


VIEWS = {
    "a crop": lambda a: a[7:50, 11:70],
    "every second row": lambda a: a[::2],
    "upside down": lambda a: a[::-1],
    "channels reversed": lambda a: a[..., ::-1],
    "a crop, upside down, channels reversed": lambda a: a[50:7:-1, 11:70, ::-1],
    "mirrored": lambda a: a[:, ::-1],
    "every second column": lambda a: a[:, ::2],
    "transposed": lambda a: a.transpose(1, 0, 2),
    "planes seen as interleaved": lambda a: np.ascontiguousarray(a.transpose(2, 0, 1)).transpose(1, 2, 0),
    "one row": lambda a: a[5:6],
    "one column": lambda a: a[:, 5:6],
    "one pixel": lambda a: a[5:6, 5:6, ::-1],
    "one row repeated": lambda a: np.broadcast_to(a[3], a.shape),
    "one pixel repeated": lambda a: np.broadcast_to(a[3, 3], a.shape),
    "read-only": lambda a: np.frombuffer(a.tobytes(), np.uint8).reshape(a.shape),
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].reshape(a.shape),
}
UNCOPIED = {"a crop", "every second row", "upside down", "channels reversed", "a crop, upside down, channels reversed",
            "one row", "one column", "one pixel", "read-only", "unaligned"}


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_uint8(model, name):
    from libswin.images import pixels, split

    view = VIEWS[name](image())
    assert same(model(view), model(np.array(view, order="C")))
    (one,) = split(view)
    assert np.shares_memory(pixels(one, False).owner, view) == (name in UNCOPIED)


FLOAT_VIEWS = {
    "a crop": lambda a: a[:, 7:50, 11:70],
    "upside down": lambda a: a[:, ::-1],
    "every second row": lambda a: a[:, ::2],
    "planes in reverse": lambda a: a[::-1],
    "mirrored": lambda a: a[:, :, ::-1],
    "channels last": lambda a: np.ascontiguousarray(a.transpose(1, 2, 0)).transpose(2, 0, 1),
    "one plane repeated": lambda a: np.broadcast_to(a[0], a.shape),
    "one row": lambda a: a[:, 5:6],
    "one pixel": lambda a: a[:, 5:6, 5:6],
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(np.float32).reshape(a.shape),
}
FLOAT_UNCOPIED = {"a crop", "upside down", "every second row", "one row", "one pixel"}


@pytest.mark.parametrize("name", FLOAT_VIEWS)
def test_views_of_float32(model, name):
    from libswin.images import pixels, split

    view = FLOAT_VIEWS[name](np.random.default_rng(1).standard_normal((3, 61, 90), np.float32))
    assert same(model(view), model(np.array(view, order="C")))
    (one,) = split(view)
    assert np.shares_memory(pixels(one, False).owner, view) == (name in FLOAT_UNCOPIED)


# ----------------------------------------------------------------------------------------------------------------------
# Batches, lists, canvases

def test_a_batch_is_its_images_bit_for_bit(model):
    batch = np.stack([image(seed=i) for i in range(5)])
    maps = model(batch)
    for i in range(5):
        assert same([m[i:i + 1] for m in maps], model(batch[i]))
    assert same(model(batch[::-2]), [m[::-2] for m in maps])


def test_a_list_gives_what_each_image_gives(model):
    images = [image(61, 90), image(33, 20), np.zeros((3, 40, 50), np.float32)]
    results = model(images)
    assert len(results) == 3 and all(same(maps, model(one)) for maps, one in zip(results, images))
    assert same(model((images[0],))[0], model(images[0]))


def test_a_list_with_a_canvas_is_one_batch(model):
    images = [image(61, 90), image(33, 20)]
    for canvas, shape in ((32, (64, 96)), ((70, 100), (70, 100)), ([61, 90], (61, 90)), (1, (61, 90))):
        maps = model(images, canvas=canvas)
        assert [m.shape[2:] for m in maps] == [(s.height, s.width) for s in model.output_shapes(*shape)]
        for i, one in enumerate(images):
            assert same([m[i:i + 1] for m in maps], model(one, canvas=shape))


def test_a_canvas_is_zeros_of_the_normalised_image(model):
    planar = ((image() - MEAN) / STD).transpose(2, 0, 1).astype(np.float32)
    padded = np.zeros((3, 64, 96), np.float32)
    padded[:, :61, :90] = planar
    assert same(model(planar, canvas=32), model(padded))
    assert near(model(image(), canvas=(64, 96), precision="f32"), model(padded, precision="f32"))


# ----------------------------------------------------------------------------------------------------------------------
# Outputs

def test_layouts_are_transposes(model):
    assert same([m.transpose(0, 3, 1, 2) for m in model(image(), layout="nhwc")], model(image()))


def test_levels_come_in_the_order_asked_for(model):
    maps = model(image())
    assert same(model(image(), levels=[2, 0]), [maps[2], maps[0]])
    assert same(model(image(), levels=(np.int64(1),)), [maps[1]])
    assert same(model(image(), levels=["c4", 1]), [maps[2], maps[1]])
    assert same(model(image(), levels=np.array([1, 2])), maps[1:])


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_out_is_written_and_returned(model, layout):
    batch = np.stack([image(seed=i) for i in range(3)])
    wanted = model(batch, layout=layout, levels=[0, 2])
    out = [np.full(m.shape, np.nan, np.float32) for m in wanted]
    got = model(batch, layout=layout, levels=[0, 2], out=out)
    assert same(got, wanted) and same(out, wanted)
    assert all(np.shares_memory(a, b) for a, b in zip(out, got))


def test_precisions(model):
    f32, bf16 = model(image(), precision="f32"), model(image(), precision="bf16")
    assert not same(f32, bf16)
    for a, b in zip(bf16, f32):
        assert np.linalg.norm(a - b) <= 1.5e-2 * np.linalg.norm(b)
    assert model.session_info("f32", 1).precision == "f32" and model.session_info("bf16").precision == "bf16"
    assert same(model(image()), {"f32": f32, "bf16": bf16}[model.session_info().precision])


@pytest.mark.parametrize("precision, other", [("f32", "bf16"), ("bf16", "f32")])
def test_the_precision_of_a_model_is_that_of_its_calls(model, precision, other):
    """Where a call asks for none of its own."""
    wanted = model(image(), precision=precision)
    made = libswin.random(SMALL, 3, precision=precision)
    for one in (made, pickle.loads(pickle.dumps(made))):
        assert one.session_info().precision == precision and same(one(image()), wanted)
        assert one.session_info(other).precision == other and same(one(image(), precision=other),
                                                                   model(image(), precision=other))
        assert same(one(image()), wanted)
    loaded = libswin.load(os.path.join(GOLDEN, "v1-detection.safetensors"), precision=precision)
    assert loaded.session_info("auto", 2).precision == precision
    seen = [made.attention(image(), 1, 0, window=0, **options).weights for options in ({}, {"precision": precision})]
    assert np.array_equal(*seen)


def test_the_thread_count_changes_nothing(model):
    assert same(model(image(), threads=1), model(image(), threads=3))
    assert model.session_info(threads=3).threads == 3


# ----------------------------------------------------------------------------------------------------------------------
# Errors

@pytest.mark.parametrize("bad, message", [
    ("picture.png", "an image is given by its path: read it first"),
    (b"picture.png", "an image is given by its path"),
    (os.path, "an image is a module, expected uint8"),
    (None, "an image is a NoneType"),
    (np.zeros((61, 90), np.uint8), r"uint8 \[61, 90\], expected .*; gray, palette and alpha are the reader's job"),
    (np.zeros((61, 90, 4), np.uint8), r"uint8 \[61, 90, 4\].*; gray, palette and alpha"),
    (np.zeros((61, 90, 1), np.uint8), "; gray, palette and alpha"),
    (np.zeros((3, 61, 90), np.uint8), r"; uint8 images are interleaved: .transpose\(1, 2, 0\)"),
    (np.zeros((61, 90, 3), np.float32), r"; float images are planar: .transpose\(2, 0, 1\)"),
    (np.zeros((3, 61, 90), np.float64), r"float64 \[3, 61, 90\].*; convert it first, e.g. with .astype"),
    (np.zeros((3, 61, 90), ">f4"), "an image is >f4"),
    (np.zeros((3, 61, 90), np.int32), r"an image is int32 \[3, 61, 90\], expected"),
    (np.zeros((0, 90, 3), np.uint8), r"uint8 \[0, 90, 3\].*; it is empty"),
    (np.zeros((0, 61, 90, 3), np.uint8), "; it is empty"),
    (np.uint8(7), r"an image is uint8 \[\], .*; it is a single number"),
    (np.zeros((1, 1, 61, 90, 3), np.uint8), r"uint8 \[1, 1, 61, 90, 3\]"),
    ([], "the list of images is empty"),
    ([np.zeros((2, 61, 90, 3), np.uint8)], "entry 0 of the list is a batch of 2"),
    ([[0, 1, 2]], "an image is a list"),
])
def test_what_is_no_image(model, bad, message):
    with pytest.raises(libswin.ArgumentError, match=message):
        model(bad)


@pytest.mark.parametrize("options, message", [
    ({"precision": "f16"}, "precision is 'f16', one of auto, f32, bf16 expected"),
    ({"layout": "NCHW"}, "layout is 'NCHW', one of nchw, nhwc expected"),
    ({"levels": []}, r"levels are \[\], different ones from 0 to 2 expected"),
    ({"levels": [3]}, r"levels are \[3\]"),
    ({"levels": [-1]}, r"levels are \[-1\]"),
    ({"levels": [1, 1]}, r"levels are \[1, 1\]"),
    ({"levels": [1, "c3"]}, r"levels are \[1, 1\]"),
    ({"levels": ["c5"]}, r"levels are \[3\], different ones from 0 to 2 expected"),
    ({"levels": ["res3"]}, r"levels are \['res3'\], a list of numbers from 0 to 4 or of names from 'c2' to 'c6' exp"),
    ({"levels": "c3"}, "levels are 'c3', a list"),
    ({"levels": 1}, "levels are 1, a list"),
    ({"levels": [1.5]}, r"levels are \[1.5\], a list"),
    ({"levels": [[0]]}, r"levels are \[\[0\]\], a list"),
    ({"mean": [1, 2]}, "mean has 2 values, 3 expected"),
    ({"std": [1, 2, 3, 4]}, "std has 4 values"),
    ({"std": [1, 0, 1]}, r"std\[1\] is 0, expected a positive number"),
    ({"mean": [float("nan"), 0, 1]}, r"mean\[0\] is"),
    ({"threads": -1}, "threads is -1"),
    ({"canvas": (60, 90)}, r"canvas is \(60, 90\), rows and columns from \(61, 90\) on expected"),
    ({"canvas": 0}, "canvas is 0"),
    ({"canvas": (64, 96, 3)}, r"canvas is \(64, 96, 3\)"),
    ({"out": []}, r"out has 0 arrays, one for each of the levels \[0, 1, 2\] expected"),
    ({"out": [np.zeros((1, 32, 16, 23), np.float64)], "levels": [0]}, r"out for level 0 is float64 .*, float32 "
                                                                      r"\[1, 32, 16, 23\] expected"),
    ({"out": [np.zeros((32, 16, 23), np.float32)], "levels": [0]}, r"out for level 0 is float32 \[32, 16, 23\]"),
    ({"out": [np.zeros((1, 32, 16, 46), np.float32)[..., ::2]], "levels": [0]}, "is not dense"),
    ({"out": [np.broadcast_to(np.float32(0), (1, 32, 16, 23))], "levels": [0]}, "is not dense"),
    ({"out": [np.zeros((1, 32, 16, 23), np.float32).tolist()],
     "levels": [0]}, "is a list that does not share its memory"),
])
def test_impossible_options(model, options, message):
    with pytest.raises(libswin.ArgumentError, match=message) as caught:
        model(image(), **options)
    assert isinstance(caught.value, ValueError) and caught.value.status == 1


def test_options_of_uint8_with_float_images(model):
    planar = np.zeros((3, 61, 90), np.float32)
    for options in ({"mean": MEAN}, {"std": STD}, {"bgr": True}):
        with pytest.raises(libswin.ArgumentError, match="a float32 image, which is taken as it is"):
            model(planar, **options)


def test_out_for_a_list(model):
    with pytest.raises(libswin.ArgumentError, match="out is given for a list"):
        model([image()], out=[])


def test_after_an_error_all_goes_on(model):
    wanted = model(image())
    with pytest.raises(libswin.Error):
        model(image(), std=[1, 0, 1])
    assert same(model(image()), wanted)


def test_impossible_sizes(model):
    for height, width in ((0, 5), (5, -1), (2**31 - 1, 2**31 - 1)):
        with pytest.raises((libswin.LimitError, libswin.ArgumentError)) as caught:
            model.output_shapes(height, width)
        assert str(caught.value)


# ----------------------------------------------------------------------------------------------------------------------
# Models

def test_presets():
    names = libswin.preset_names()
    assert "swin_tiny_patch4_window7_224" in names and len(names) == len(set(names)) > 10
    for name in names:
        config = libswin.preset(name)
        assert len(config.depths) == 4 and config.version == (2 if name.startswith("swinv2") else 1)
    with pytest.raises(libswin.ArgumentError, match="resnet50"):
        libswin.preset("resnet50")


@pytest.mark.parametrize("changes", [
    {}, {"window": ((3, 5), (4, 6), (7, 7))}, {"window": (3, 4, 5)}, {"lineage": "timm", "image_size": (64, 96)},
    {"out_norm": (0, 2)}, {"qkv_bias": False}, {"patch_norm": False}, {"mlp_ratio": 2.5}, {"absolute_position": (5, 7)},
    {"patch_size": 2},
])
def test_a_configuration_survives_the_library(changes):
    config = dataclasses.replace(SMALL, **changes)
    assert libswin.random(config).config == config


@pytest.mark.parametrize("changes, message", [
    ({"heads": (1, 2)}, "3 depths and 2 heads"),
    ({"depths": (), "heads": ()}, "0 depths"),
    ({"lineage": "resnet"}, "lineage is 'resnet', one of auto, detection"),
    ({"window": (3, 4)}, r"window is \(3, 4\), a number, or for each of 3 stages"),
    ({"window": ((3, 4, 5),) * 3}, "window is"),
])
def test_impossible_configurations(changes, message):
    with pytest.raises(libswin.ArgumentError, match=message):
        dataclasses.replace(SMALL, **changes)


def test_the_library_checks_configurations_too():
    with pytest.raises(libswin.ArgumentError, match="heads"):
        libswin.random(dataclasses.replace(SMALL, heads=(3, 5, 7)))


def test_seeds(model):
    assert same(libswin.random(SMALL, 3)(image()), model(image()))
    assert not same(libswin.random(SMALL, 4)(image()), model(image()))


def test_copies_and_pickles(model):
    assert copy.copy(model) is model and copy.deepcopy(model) is model
    assert same(pickle.loads(pickle.dumps(model))(image()), model(image()))


def test_closed_models():
    with libswin.random(SMALL) as model:
        model(image())
    assert repr(model) == "<libswin.Model, closed>"
    for use in (lambda: model(image()), lambda: model.info, lambda: model.output_shapes(4, 4), model.session_info):
        with pytest.raises(libswin.StateError, match="the model is closed"):
            use()
    model.close()


def golden(name):
    import json

    data = open(os.path.join(GOLDEN, name), "rb").read()
    start = 8 + int.from_bytes(data[:8], "little")
    entries = json.loads(data[8:start])
    entries.pop("__metadata__", None)
    types = {
    "F32": np.float32,
    "F64": np.float64,
    "F16": np.float16,
    "I32": np.int32,
    "I64": np.int64,
     "BOOL": np.bool_}
    return {key: np.frombuffer(data[start + e["data_offsets"][0]:start + e["data_offsets"][1]], types[e["dtype"]])
            .reshape(e["shape"]) for key, e in entries.items()}


def check_golden(model):
    whole, expected = golden("image.safetensors")["image"], golden("v1-detection.expect.safetensors")
    sizes = [key.split(".")[1] for key in expected if key.startswith("size.")]
    assert len(sizes) >= 3
    for case in sizes:
        height, width = expected[f"size.{case}"]
        for level, m in enumerate(model(whole[:, :height, :width], precision="f32")):
            wanted = expected[f"level{level}.{case}"]
            assert m.shape == (1, *wanted.shape)
            assert np.linalg.norm(m[0] - wanted) <= 1e-5 * np.linalg.norm(wanted), (height, width, level)


def test_a_file_gives_what_its_own_framework_gives():
    model = libswin.load(os.path.join(GOLDEN, "v1-detection.safetensors"))
    assert model.info.dialect and model.info.lineage == "detection" and model.info.unknown_count == 0
    assert len(model.tensor_names("used")) == model.info.used_count > 20
    assert model.tensor_names("unknown") == []
    check_golden(model)


def test_from_a_pickle_to_the_maps(tmp_path):
    """The whole way of a detectron2 .pkl: converted, opened, computed."""
    tensors = {f"backbone.{key}": value for key, value in golden("v1-detection.safetensors").items()}
    (tmp_path / "model.pkl").write_bytes(pickle.dumps({"model": tensors, "__author__": "x"}, 2))
    checkpoint(tmp_path / "model.pkl", tmp_path / "model.safetensors")
    model = libswin.load(tmp_path / "model.safetensors")
    assert model.info.prefix == "backbone."
    check_golden(model)
    check_golden(pickle.loads(pickle.dumps(model)))


@pytest.mark.filterwarnings("ignore:.*position biases resized")
def test_parameters_of_load():
    path = os.path.join(GOLDEN, "v1-detection.safetensors")
    for window, wanted in (
            ((3, 4, 5), ((3, 3), (4, 4), (5, 5))), (((3, 5),) * 3, ((3, 5),) * 3), (5, ((5, 5),) * 3)):
        assert libswin.load(path, window=window).config.window == wanted
    with pytest.raises(libswin.ArgumentError, match="the model has 3 stages"):
        libswin.load(path, window=(3, 4, 5, 6))
    assert libswin.load(path, lineage="microsoft").config.lineage == "microsoft"
    assert libswin.load(path, out_norm="off").config.out_norm == ()
    assert libswin.load(path, prefix="").info.prefix == ""
    with pytest.raises(libswin.MismatchError, match="teacher"):
        libswin.load(path, prefix="teacher.")
    with pytest.raises(libswin.MismatchError):
        libswin.load(path, version=2)
    with pytest.raises(libswin.LimitError):
        libswin.load(path, max_header_bytes=16)
    for options, message in (
            ({"lineage": "swin"}, "lineage is 'swin'"), ({"out_norm": "yes"}, "out_norm is 'yes'"),
            ({"window": "7"}, "window is '7'"), ({"window": 7.5}, "window is 7.5, a number, or for each of"),
            ({"window": ()}, r"window is \(\)"), ({"window": (7, None, 7)}, r"window is \(7, None, 7\), a number"),
            ({"pretrained_window": 1 << 40}, "pretrained_window is 1099511627776"),
            ({"image_size": "224"}, "image_size is '224', a number or a pair of rows and columns expected"),
            ({"image_size": 224.0}, "image_size is 224.0, a number or a pair"),
            ({"image_size": (224,)}, r"image_size is \(224,\), a number or a pair"),
            ({"image_size": (224, 224, 3)}, r"image_size is \(224, 224, 3\), a number or a pair"),
            ({"image_size": 1 << 40}, "image_size is 1099511627776, a number or a pair")):
        with pytest.raises(libswin.ArgumentError, match=message):
            libswin.load(path, **options)


@pytest.mark.parametrize("size, wanted", [
    (64, (64, 64)), ((32, 64), (32, 64)), ([32, 64], (32, 64)), (np.int32(64), (64, 64)),
    (np.array([32, 64]), (32, 64)), ((0, 0), (0, 0)),
])
def test_image_sizes(size, wanted):
    """One number stands for both sides."""
    path = os.path.join(GOLDEN, "v1-timm.safetensors")
    assert libswin.load(path, image_size=size).config.image_size == wanted
    assert dataclasses.replace(SMALL, lineage="timm", image_size=size).image_size == wanted
    assert pickle.loads(pickle.dumps(libswin.load(path, image_size=size))).config.image_size == wanted


def test_resized_position_biases_are_warned_of():
    path = os.path.join(GOLDEN, "v1-detection.safetensors")
    with pytest.warns(UserWarning, match=f"^{re.escape(path)}: position biases resized from 4x4 to 5x5, as window="):
        libswin.load(path, window=5)
    with pytest.warns(UserWarning, match="position biases resized in 2 of 3 stages, as"):
        libswin.load(path, window=(4, 5, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        libswin.load(path, window=4)
        libswin.load(os.path.join(GOLDEN, "v2-microsoft.safetensors"), window=3)


@pytest.mark.filterwarnings("ignore:.*position biases resized")
def test_windows_of_numpy():
    path = os.path.join(GOLDEN, "v1-detection.safetensors")
    for window in (np.int64(5), np.array([5, 5, 5]), [np.array([5, 5])] * 3):
        assert libswin.load(path, window=window).config.window == ((5, 5),) * 3


def test_a_backbone_takes_and_tells_what_load_takes():
    of_load = inspect.signature(libswin.load).parameters
    ours = inspect.signature(libswin.torch_backbone).parameters
    assert all(ours[name] == of_load[name] for name in of_load if name != "path")
    assert all(re.search(rf"\b{name}\b", libswin.torch_backbone.__doc__) for name in ours)


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(libswin.FileError, match="missing.safetensors") as caught:
        libswin.load(tmp_path / "missing.safetensors")
    assert isinstance(caught.value, OSError)
    (tmp_path / "bad").write_bytes(b"\xff" * 100)
    with pytest.raises(libswin.FormatError):
        libswin.load(tmp_path / "bad")
    torch_file = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checkpoints", "zip.pth")
    with pytest.raises(libswin.FormatError, match="python3 -m libswin convert [^ ]*zip.pth [^ ]*/zip.safetensors$"):
        libswin.load(torch_file)
