# SPDX-License-Identifier: MIT
"""A libswin model in place of a PyTorch backbone, for inference and for comparing the two."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Optional, Sequence, Union

import torch

from .errors import ArgumentError
from .model import Model, load


class ShapeSpec(NamedTuple):
    """What detectron2 asks of a feature map."""

    channels: int
    stride: int
    height: Optional[int] = None
    width: Optional[int] = None


class Backbone(torch.nn.Module):
    """Computes feature maps with libswin; made by `libswin.torch_backbone`, which describes the arguments."""

    size_divisibility = 0

    def __init__(self, source: Union[str, "os.PathLike[str]", Model], *, out_indices: Sequence[int] = (0, 1, 2, 3),
                 names: Union[None, str, Sequence[str]] = None, precision: str = "auto", threads: int = 0,
                 **options: Any) -> None:
        super().__init__()
        if isinstance(source, Model) and options:
            raise ArgumentError(f"{', '.join(options)} given with a model that is loaded already")
        self.model = source if isinstance(source, Model) else load(source, precision=precision, **options)
        self.out_indices = tuple(out_indices)
        self.precision, self.threads = precision, threads
        # The channels of all levels, as Swin Transformers in mmdetection have them.
        self.num_features = [shape.channels for shape in self.model.output_shapes(224, 224)]
        if not self.out_indices or not all(0 <= level < len(self.num_features) for level in self.out_indices):
            raise ArgumentError(
                f"out_indices are {self.out_indices}, levels from 0 to {len(self.num_features) - 1} expected")
        if isinstance(names, str):
            first = {"c": 2, "res": 2, "p": 0}.get(names)
            if first is None:
                raise ArgumentError(f"names is {names!r}, c, res, p, or a name per level expected")
            names = [f"{names}{first + level}" for level in self.out_indices]
        elif names is not None and len(names) != len(self.out_indices):
            raise ArgumentError(
                f"names has {len(names)} entries, one for each of the levels {self.out_indices} expected")
        self.names = None if names is None else list(names)

    def forward(self, images: torch.Tensor) -> Union[tuple[torch.Tensor, ...], dict[str, torch.Tensor]]:
        # torch.compile cannot look into a C library: what lies around this is compiled, and this is called as it is.
        # What says so takes as long to import as PyTorch itself, so it waits until somebody compiles.
        if hasattr(torch, "compiler") and torch.compiler.is_compiling():
            from .uncompiled import compute
            return compute(self, images)
        return self._compute(images)

    def _compute(self, images: torch.Tensor) -> Union[tuple[torch.Tensor, ...], dict[str, torch.Tensor]]:
        if images.dim() != 4 or images.shape[1] != 3:
            raise ArgumentError(f"images are {list(images.shape)}, [N, 3, H, W] expected")
        pixels = images.detach().to("cpu", torch.float32)
        shapes = self.model.output_shapes(*pixels.shape[2:])
        maps = [torch.empty(len(pixels), *(shapes[level].channels, shapes[level].height, shapes[level].width))
                for level in self.out_indices]
        self.model(pixels, precision=self.precision, threads=self.threads, levels=self.out_indices,
                   out=[each.numpy() for each in maps])
        results = [each.to(images.device, images.dtype) for each in maps]
        return tuple(results) if self.names is None else dict(zip(self.names, results))

    def output_shape(self) -> dict[str, ShapeSpec]:
        """Channels and strides by name, as detectron2's FPN asks for them."""
        shapes = self.model.output_shapes(224, 224)
        names = self.names or [f"p{level}" for level in self.out_indices]
        return {name: ShapeSpec(shapes[level].channels, shapes[level].stride)
                for name, level in zip(names, self.out_indices)}

    @property
    def padding_constraints(self) -> dict[str, int]:
        """None: every size is taken as it is."""
        return {}

    def init_weights(self, pretrained: Any = None) -> None:
        """mmdetection calls this; the weights are there already."""

    def extra_repr(self) -> str:
        return f"{self.model!r}, out_indices={self.out_indices}"
