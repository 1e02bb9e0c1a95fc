# SPDX-License-Identifier: MIT
"""What published code makes of position biases, for position_bias.c: resampled tables and continuous biases.

    python published.py torch      needs torch and timm: bicubic.*, linear.* and continuous.*
    python published.py scipy      needs scipy < 1.14, which still has interp2d: spline.*

Each group writes <group>.safetensors beside this script. Tensors are float64:

    <rule>.<rows>x<columns>.<new rows>x<new columns>.source   [rows * columns, heads], sides of tables
    <rule>.<rows>x<columns>.<new rows>x<new columns>.expect   [heads, new rows * new columns]
    continuous.weight1, .bias1, .weight2                      the network
    continuous.<rows>x<columns>.<pretrained>                  [heads, (2 rows - 1) * (2 columns - 1)], windows
"""

import json
import os
import struct
import sys

import numpy as np

SQUARES = [(3, 5), (5, 3), (7, 11), (11, 7), (13, 23), (23, 13), (13, 27), (1, 5), (5, 1)]
HEADS = 2


def source(rows, columns):
    """Any numbers: smooth, with some noise, the same everywhere."""
    i = np.arange(rows * columns * HEADS, dtype=np.float64)
    values = np.sin(0.7 * i) + 0.3 * np.cos(2.9 * i)
    return values.astype(np.float32).astype(np.float64).reshape(rows * columns, HEADS)


def write(group, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        array = np.ascontiguousarray(array, dtype="<f8")
        offsets = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": "F64", "shape": list(array.shape), "data_offsets": offsets}
        data += array.tobytes()
    text = json.dumps(header).encode()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), group + ".safetensors"), "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def name(rule, old, new):
    return f"{rule}.{old[0]}x{old[1]}.{new[0]}x{new[1]}"


def spline(tensors):
    """As SimMIM's and mmpretrain's loaders do it, tables too short for a cubic spline left out."""
    from scipy import interpolate

    def grid(old, new):
        left, right = 1.01, 1.5
        while right - left > 1e-6:
            q = (left + right) / 2.0
            if (1.0 - q ** (old // 2)) / (1.0 - q) > new // 2:
                right = q
            else:
                left = q
        steps = np.cumsum([q ** i for i in range(old // 2)])
        return np.concatenate([-steps[::-1], [0.0], steps])

    for old, new in SQUARES:
        if old < 5:
            continue
        table = source(old, old)
        x = grid(old, new)
        at = np.arange(-(new // 2), new // 2 + 0.1, 1.0)
        expect = [interpolate.interp2d(x, x, table[:, h].reshape(old, old), kind="cubic")(at, at).reshape(-1)
                  for h in range(HEADS)]
        tensors[name("spline", (old, old), (new, new)) + ".source"] = table
        tensors[name("spline", (old, old), (new, new)) + ".expect"] = np.stack(expect)


def resampled(tensors):
    import torch
    from timm.layers import resize_rel_pos_bias_table
    for old, new in SQUARES:
        table = torch.from_numpy(source(old, old))
        # As Microsoft's and mmdetection's loaders call it.
        image = table.permute(1, 0).reshape(1, HEADS, old, old)
        bicubic = torch.nn.functional.interpolate(image, size=(new, new), mode="bicubic").reshape(HEADS, -1)
        tensors[name("bicubic", (old, old), (new, new)) + ".source"] = table
        tensors[name("bicubic", (old, old), (new, new)) + ".expect"] = bicubic
    for old, new in [((s, s), (t, t)) for s, t in SQUARES] + [((13, 13), (13, 17)), ((13, 13), (9, 23))]:
        table = torch.from_numpy(source(*old))
        window = tuple((side + 1) // 2 for side in new)
        linear = resize_rel_pos_bias_table(table, window, (new[0] * new[1], HEADS))
        tensors[name("linear", old, new) + ".source"] = table
        tensors[name("linear", old, new) + ".expect"] = linear.permute(1, 0)


def continuous(tensors):
    import torch
    from timm.models.swin_transformer_v2 import WindowAttention
    rng = np.random.default_rng(3)
    heads = 3
    values = {"weight1": rng.uniform(-1, 1, (512, 2)), "bias1": rng.uniform(-0.5, 0.5, 512),
              "weight2": rng.normal(0, 512 ** -0.5, (heads, 512))}
    values = {k: v.astype(np.float32).astype(np.float64) for k, v in values.items()}
    tensors.update({"continuous." + k: v for k, v in values.items()})
    for rows, columns, pretrained in [(4, 4, 0), (8, 8, 6), (16, 16, 12), (4, 6, 0), (2, 2, 0), (7, 7, 12)]:
        attention = WindowAttention(dim=12 * heads, window_size=(rows, columns), num_heads=heads,
                                    pretrained_window_size=(pretrained, pretrained)).double()
        with torch.no_grad():
            for module, part in ((attention.cpb_mlp[0].weight, "weight1"), (attention.cpb_mlp[0].bias, "bias1"),
                                 (attention.cpb_mlp[2].weight, "weight2")):
                module.copy_(torch.from_numpy(values[part]))
            bias = 16 * torch.sigmoid(attention.cpb_mlp(attention.relative_coords_table))
        tensors[f"continuous.{rows}x{columns}.{pretrained}"] = bias.reshape(-1, heads).permute(1, 0)


def main():
    tensors = {}
    if sys.argv[1:] == ["scipy"]:
        spline(tensors)
    elif sys.argv[1:] == ["torch"]:
        resampled(tensors)
        continuous(tensors)
    else:
        sys.exit(__doc__)
    write(sys.argv[1], tensors)


main()
