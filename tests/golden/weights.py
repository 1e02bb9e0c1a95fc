# SPDX-License-Identifier: MIT
"""Small networks with random weights, under the names of Microsoft's detection code.

Every value has at most eight significant bits, so that a file in F32, F16 or BF16 holds the same numbers.
"""

import zlib
from dataclasses import dataclass

import numpy as np

CLASSES = 3


@dataclass(frozen=True)
class Network:
    version: int = 1
    embed: int = 8
    depths: tuple = (2, 2, 2)
    heads: tuple = (2, 2, 4)
    window: int = 4
    windows: tuple = ()  # of each stage where they differ; {rows, columns} where one is not square
    pretrained: tuple = (0, 0, 0)
    patch: int = 4
    mlp_ratio: int = 2
    position: int = 0  # side of the grid of the absolute position embedding
    block_norm: int = 0
    qkv_bias: bool = True
    patch_norm: bool = True
    sharp: bool = False  # V2: heads of the largest scale in shifted blocks too
    seed: int = 1

    def channels(self, stage):
        return self.embed << stage

    def stage_window(self, stage):
        window = self.windows[stage] if self.windows else self.window
        return window if isinstance(window, tuple) else (window, window)


def round8(values):
    """To the nearest number of eight significant bits that F16 holds too."""
    values = np.asarray(values, np.float64)
    mantissa, exponent = np.frexp(values)
    rounded = np.ldexp(np.round(mantissa * 256) / 256, exponent)
    rounded[np.abs(rounded) < 2.0 ** -12] = 0
    assert np.abs(rounded).max() < 60000
    return rounded.astype(np.float32)


def random(net, name, shape, scale, offset=0.0):
    generator = np.random.Generator(np.random.PCG64([net.seed, zlib.crc32(name.encode())]))
    return round8(offset + scale * generator.standard_normal(shape))


def make(net):
    state = {}

    def put(name, shape, scale, offset=0.0):
        state[name] = random(net, name, shape, scale, offset)

    def norm(name, channels):
        put(f"{name}.weight", (channels,), 0.25, 1.0)
        put(f"{name}.bias", (channels,), 0.25)

    def linear(name, rows, columns, gain=1.0, bias=True):
        put(f"{name}.weight", (rows, columns), gain / np.sqrt(columns))
        if bias:
            put(f"{name}.bias", (rows,), 0.25)

    put("patch_embed.proj.weight", (net.embed, 3, net.patch, net.patch), 1 / np.sqrt(3 * net.patch ** 2))
    put("patch_embed.proj.bias", (net.embed,), 0.25)
    if net.patch_norm:
        norm("patch_embed.norm", net.embed)
    if net.position:
        put("absolute_pos_embed", (1, net.embed, net.position, net.position), 0.5)
    for s, depth in enumerate(net.depths):
        c, heads = net.channels(s), net.heads[s]
        rows, columns = net.stage_window(s)
        for b in range(depth):
            block = f"layers.{s}.blocks.{b}"
            norm(f"{block}.norm1", c)
            linear(f"{block}.attn.qkv", 3 * c, c, 1.5, bias=net.version == 1 and net.qkv_bias)
            if net.version == 1:
                put(f"{block}.attn.relative_position_bias_table", ((2 * rows - 1) * (2 * columns - 1), heads), 1.0)
            else:
                put(f"{block}.attn.q_bias", (c,), 0.25)
                put(f"{block}.attn.v_bias", (c,), 0.25)
                put(f"{block}.attn.logit_scale", (heads, 1, 1), 0.5, np.log(10))
                if b == 0 and s == 0:
                    state[f"{block}.attn.logit_scale"][0] = 5  # beyond ln 100, where it is cut
                if b % 2 == 1 and net.sharp:
                    state[f"{block}.attn.logit_scale"][:] = 5
                linear(f"{block}.attn.cpb_mlp.0", 512, 2)
                linear(f"{block}.attn.cpb_mlp.2", heads, 512, 3.0, bias=False)
            linear(f"{block}.attn.proj", c, c)
            norm(f"{block}.norm2", c)
            linear(f"{block}.mlp.fc1", net.mlp_ratio * c, c)
            linear(f"{block}.mlp.fc2", c, net.mlp_ratio * c)
            if net.block_norm and (b + 1) % net.block_norm == 0:
                norm(f"{block}.norm3", c)
        if s + 1 < len(net.depths):
            norm(f"layers.{s}.downsample.norm", (4 if net.version == 1 else 2) * c)
            linear(f"layers.{s}.downsample.reduction", 2 * c, 4 * c, bias=False)
        norm(f"norm{s}", c)
    last = net.channels(len(net.depths) - 1)
    norm("norm", last)
    linear("head", CLASSES, last)
    return state


def image(height=72, width=80):
    """The picture that every expectation was computed from: a case uses a top left corner of it."""
    return random(Network(), "image", (3, height, width), 1.2)
