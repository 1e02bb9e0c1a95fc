# SPDX-License-Identifier: MIT
"""Makes the checkpoints beside it with the frameworks that users get theirs from; the tests read them without.

    python make.py torch       # PyTorch 2.15, timm-like, detectron2-like and SlowFast-like files
    python make.py mmengine    # mmengine 0.10.7 on the same PyTorch
    python make.py paddle      # PaddlePaddle 3.3.1
"""

from __future__ import annotations

import argparse
import collections
import os
import pickle
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from expected import TENSORS, values  # noqa: E402


def path(name: str) -> str:
    return os.path.join(HERE, name)


def torch_tensors():
    """The tensors as networks really hold them: transposed, sliced out of a common storage, expanded, as parameters."""
    import torch

    types = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
             "I64": torch.int64, "BOOL": torch.bool}
    made = collections.OrderedDict(
        (name, torch.from_numpy(values(name)).to(types[dtype])) for name, (dtype, _) in TENSORS.items())
    attention = "backbone.layers.0.blocks.0.attn."
    proj = made[attention + "proj.weight"]
    made[attention + "proj.weight"] = proj.t().contiguous().t()
    both = torch.cat([torch.zeros(1), made[attention + "query"].flatten(), made[attention + "key"].flatten()])
    made[attention + "query"] = both[1:7].view(2, 3)
    made[attention + "key"] = both[7:].view(2, 3)
    made["backbone.expanded"] = made["backbone.expanded"][:1].clone().expand(4, 3)
    made[attention + "qkv.weight"] = torch.nn.Parameter(made[attention + "qkv.weight"])
    return made


def torch_module(tensors):
    """A module whose state_dict() has these names."""
    import torch

    top = torch.nn.Module()
    for name, tensor in tensors.items():
        here = top
        *parts, last = name.split(".")
        for part in parts:
            if not hasattr(here, part):
                here.add_module(part, torch.nn.Module())
            here = getattr(here, part)
        if isinstance(tensor, torch.nn.Parameter):
            here.register_parameter(last, tensor)
        else:
            here.register_buffer(last, tensor)
    top.backbone.register_buffer("transient", torch.zeros(3), persistent=False)
    return top


def make_torch() -> None:
    import torch

    tensors = torch_tensors()
    plain = {name: tensor.detach() for name, tensor in tensors.items()}
    zeros = {name: torch.zeros_like(tensor) for name, tensor in plain.items()}
    training = {
        "model": tensors,
        "optimizer": {"state": {0: {"exp_avg": torch.ones(3)}}, "param_groups": [{"lr": 1e-4, "params": [0]}]},
        "args": argparse.Namespace(lr=1e-4, decay=[0.05]),
        "accuracy": torch.tensor(81.2), "epoch": 299, "best": np.float64(81.3), "device": torch.device("cpu"),
    }
    torch.save(training, path("stream.pth"), _use_new_zipfile_serialization=False)
    torch.save(dict(training, activation=torch.nn.GELU), path("zip.pth"))
    torch.save(tensors, path("bare.bin"))
    torch.save({"state_dict": zeros, "state_dict_ema": plain, "arch": "swin", "epoch": 3}, path("timm.pth"))
    torch.save({"epoch": 3, "model_state": plain, "cfg": "MODEL:\n"}, path("slowfast.pyth"))
    torch.save({"model": zeros, "ema": {"module": plain, "updates": 12}, "last_epoch": 3}, path("rtdetr.pth"))
    torch.save(torch_module(tensors), path("module.pth"))
    odd = dict(plain, sparse=torch.eye(3).to_sparse(), complex=torch.zeros(2, dtype=torch.complex128))
    torch.save(odd, path("odd.pth"))
    for protocol in (2, 4):
        with open(path(f"tensors_p{protocol}.pkl"), "wb") as file:
            pickle.dump({"model": plain, "__author__": "third party", "matching_heuristics": True}, file, protocol)
    arrays = {name: values(name) for name, (dtype, _) in TENSORS.items() if dtype != "BF16"}
    arrays["backbone.layers.0.blocks.0.attn.qkv.weight"] = np.asfortranarray(
        arrays["backbone.layers.0.blocks.0.attn.qkv.weight"])
    arrays["backbone.norm0.bias"] = arrays["backbone.norm0.bias"].astype(">f8")
    for protocol in (0, 2, 5):
        with open(path(f"arrays_p{protocol}.pkl"), "wb") as file:
            pickle.dump({"model": arrays, "__author__": "Model Zoo"}, file, protocol)


def make_mmengine() -> None:
    import torch
    from mmengine.config import Config
    from mmengine.logging import MessageHub

    hub = MessageHub.get_instance("train")
    hub.update_scalar("train/loss", 0.25)
    tensors = torch_tensors()
    # mmengine's EMAHook swaps the two at save: state_dict holds the averaged weights.
    raw = {f"module.{name}": torch.zeros_like(tensor) for name, tensor in tensors.items()}
    torch.save({
        "meta": {"epoch": 12, "config": Config({"model": {"type": "MaskRCNN"}}),
                 "dataset_meta": {"CLASSES": ("cat", "dog")}},
        "state_dict": tensors, "ema_state_dict": dict(raw, steps=torch.tensor(9)), "message_hub": hub.state_dict(),
    }, path("mmengine.pth"))


def make_paddle() -> None:
    import paddle

    types = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "BOOL": "bool"}
    layer = paddle.nn.Layer()
    for name, (dtype, shape) in TENSORS.items():
        layer.register_buffer(name.replace(".", "_"), paddle.to_tensor(values(name)).astype(types[dtype]))
    state = collections.OrderedDict((name, layer.state_dict()[name.replace(".", "_")]) for name in TENSORS)
    paddle.save(state, path("paddle.pdparams"))
    paddle.save(state, path("paddle_p2.pdparams"), protocol=2)
    paddle.save({"model": state, "epoch": 3}, path("paddle_nested.pdparams"))


if __name__ == "__main__":
    {"torch": make_torch, "mmengine": make_mmengine, "paddle": make_paddle}[sys.argv[1]]()
