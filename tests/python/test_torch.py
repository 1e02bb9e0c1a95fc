# SPDX-License-Identifier: MIT
"""Beside PyTorch, where it is installed: tensors in, a module in place of a backbone, DataLoader workers."""

from __future__ import annotations

import copy
import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import libswin  # noqa: E402
from libswin.convert import checkpoint  # noqa: E402

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "v1-detection.safetensors")
SMALL = libswin.Config(embed_dim=32, depths=(2, 2, 1), heads=(1, 2, 4), window=4)


@pytest.fixture(scope="module")
def model():
    return libswin.random(SMALL, seed=3)


def same(one, other) -> bool:
    return len(one) == len(other) and all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(one, other))


def test_importing_libswin_does_not_import_torch():
    program = "import sys, libswin, libswin.convert; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_tensors_are_images_without_a_copy(model):
    from libswin.images import pixels, split

    interleaved = torch.randint(0, 256, (40, 50, 3), dtype=torch.uint8)
    planar = torch.randn(2, 3, 40, 50)
    assert same(model(interleaved), model(interleaved.numpy())) and same(model(planar), model(planar.numpy()))
    for tensor in (interleaved, planar, planar[:, :, 3:, 5:]):
        for one in split(tensor):
            assert np.shares_memory(pixels(one, False).owner, tensor.numpy())
    assert same(model(planar.to(memory_format=torch.channels_last)), model(planar))
    assert same(model([interleaved, planar[0]])[1], model(planar[0]))


def test_tensors_that_cannot_be_images(model):
    with pytest.raises(libswin.ArgumentError, match="require.*grad"):
        model(torch.randn(3, 40, 50, requires_grad=True))
    with pytest.raises(libswin.ArgumentError, match="an image cannot be shared: .*meta"):
        model(torch.empty(3, 40, 50, device="meta"))
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        with pytest.raises(libswin.ArgumentError) as caught:
            model(torch.randn(3, 40, 50).to(dtype))
        assert str(caught.value).startswith(f"an image is {str(dtype)[6:]} [3, 40, 50], expected uint8 [H, W, 3]")
        assert str(caught.value).endswith("with .astype(numpy.float32), or .float() where it is a tensor")


def test_tensors_as_out(model):
    planar = torch.randn(2, 3, 40, 50)
    wanted = model(planar)
    out = [torch.full(m.shape, float("nan")) for m in wanted]
    model(planar, out=out)
    assert same(out, wanted)


@pytest.mark.parametrize("names, keys", [
    (None, None), ("c", ["c3", "c4"]), ("res", ["res3", "res4"]), ("p", ["p1", "p2"]), (["a", "b"], ["a", "b"]),
])
def test_the_conventions_of_detectors(model, names, keys):
    backbone = libswin.torch_backbone(model, out_indices=(1, 2), names=names)
    images = torch.randn(2, 3, 40, 50)
    maps = backbone(images)
    if keys is not None:
        assert list(maps) == keys and list(backbone.output_shape()) == keys
        maps = tuple(maps.values())
    assert type(maps) is tuple and same(maps, model(images, levels=(1, 2)))
    assert [(s.channels, s.stride) for s in backbone.output_shape().values()] == [(64, 8), (128, 16)]
    assert backbone.num_features == [32, 64, 128]


def test_it_is_a_module(model):
    detector = torch.nn.Module()
    detector.backbone = libswin.torch_backbone(model, out_indices=[0])
    detector.eval().backbone.init_weights()
    images = torch.randn(1, 3, 40, 50)
    assert not detector.state_dict() and "libswin.Model" in repr(detector)
    assert same(copy.deepcopy(detector).backbone(images), detector.backbone(images))
    assert detector.backbone(images.bfloat16())[0].dtype == torch.bfloat16
    assert not detector.backbone(images.requires_grad_())[0].requires_grad
    with torch.inference_mode():
        assert same(detector.backbone(images.detach()), model(images.detach(), levels=[0]))


class Head(torch.nn.Module):
    """A detector in small: something before the backbone, something behind it."""

    def __init__(self, backbone):
        super().__init__()
        self.backbone, self.neck = backbone, torch.nn.Conv2d(32, 4, 1)

    def forward(self, images):
        maps = self.backbone(images + 1)
        return self.neck(2 * (maps["c2"] if isinstance(maps, dict) else maps[0]))


@pytest.mark.skipif(not hasattr(torch, "compiler"), reason="needs torch.compiler")
@pytest.mark.parametrize("names", [None, "c"])
def test_it_is_a_break_in_a_compiled_graph(model, names):
    """What lies before and behind it is compiled, and only once."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    detector = Head(libswin.torch_backbone(model, out_indices=(0, 1), names=names))
    compiled = torch.compile(detector, backend=backend)
    for images in torch.randn(2, 1, 3, 40, 50):
        with torch.inference_mode():
            assert torch.equal(compiled(images), detector(images))
    assert len(graphs) == 2
    torch.compile(detector, backend="eager")(images).sum().backward()
    assert detector.neck.weight.grad.abs().sum() > 0
    alone = torch.compile(detector.backbone, backend="eager")(images)
    assert same(alone.values() if names else alone, model(images, levels=(0, 1)))


def test_importing_it_does_not_import_the_compiler():
    """Which takes as long as PyTorch itself."""
    program = ("import sys, torch; before = 'torch._dynamo' in sys.modules; import libswin.backbone\n"
               "assert before or 'torch._dynamo' not in sys.modules")
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@pytest.mark.parametrize("options, message", [
    ({"out_indices": ()}, "out_indices are"),
    ({"out_indices": (0, 3)}, r"out_indices are \(0, 3\), levels from 0 to 2"),
    ({"out_indices": (0,), "names": "stage"}, "names is 'stage', c, res, p, or"),
    ({"out_indices": (0,), "names": ["a", "b"]}, "names has 2 entries"),
    ({"out_indices": (0,), "window": 3}, "window given with a model"),
])
def test_impossible_backbones(model, options, message):
    with pytest.raises(libswin.ArgumentError, match=message):
        libswin.torch_backbone(model, **options)


def test_from_a_file(tmp_path):
    with pytest.raises(libswin.ArgumentError, match="out_indices"):
        libswin.torch_backbone(GOLDEN)  # has three levels
    backbone = libswin.torch_backbone(GOLDEN, out_indices=(0, 1, 2), out_norm="off", precision="f32", threads=1)
    images = torch.randn(1, 3, 40, 50)
    assert same(backbone(images), libswin.load(GOLDEN, out_norm="off")(images, precision="f32"))


def test_a_backbone_computes_in_the_precision_of_its_model():
    images = torch.randn(1, 3, 40, 50)
    wanted = {precision: libswin.random(SMALL, 3)(images, precision=precision) for precision in ("f32", "bf16")}
    for precision, other in (("f32", "bf16"), ("bf16", "f32")):
        model = libswin.random(SMALL, 3, precision=precision)
        assert same(libswin.torch_backbone(model, out_indices=(0, 1, 2))(images), wanted[precision])
        assert same(libswin.torch_backbone(model, out_indices=(0, 1, 2), precision=other)(images), wanted[other])


class Features(torch.utils.data.Dataset):
    """Computes in the workers."""

    def __init__(self, model):
        self.model = model

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return torch.from_numpy(self.model(np.full((20, 30, 3), 40 * index, np.uint8), threads=2)[2][0])


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_of_a_data_loader(model, context):
    wanted = [model(np.full((20, 30, 3), 40 * i, np.uint8))[2][0] for i in range(6)]
    loader = torch.utils.data.DataLoader(Features(model), batch_size=2, num_workers=2, timeout=120,
                                         multiprocessing_context=context)
    assert same([m for batch in loader for m in batch], wanted)


def test_a_checkpoint_saved_here_and_now(tmp_path):
    """Whatever this PyTorch writes."""
    tensors = {"a.weight": torch.randn(6, 4).t(), "a.bias": torch.randn(9)[3:7].bfloat16(), "steps": torch.tensor(3)}
    for stream in (True, False):
        optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(2))])
        torch.save({"model": tensors, "optimizer": optimizer.state_dict()}, tmp_path / "in",
                   _use_new_zipfile_serialization=stream)
        assert checkpoint(tmp_path / "in", tmp_path / "out")[:3] == (3, 112, "model")
