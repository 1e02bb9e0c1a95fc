# SPDX-License-Identifier: MIT
"""What the PyTorch packages have in common: loading, double precision, and taking maps out of a network."""

import numpy as np
import torch

torch.manual_seed(0)


def load(model, state):
    """Loads weights under the package's own names; nothing but derived buffers may be missing, nothing unexpected."""
    result = model.load_state_dict({name: torch.tensor(value) for name, value in state.items()}, strict=False)
    assert not result.unexpected_keys, result.unexpected_keys
    derived = ("relative_position_index", "relative_coords_table", "attn_mask", "layernorm.weight", "layernorm.bias",
               "mask_token")
    missing = [name for name in result.missing_keys if not name.endswith(derived)]
    assert not missing, missing
    model.eval()
    return model


def arrays(model):
    return {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}


def double(model):
    """In double precision throughout: the stored coordinates of V2 are made anew from the integers behind them."""
    model = model.double()
    for module in model.modules():
        table = getattr(module, "relative_coords_table", None)
        if table is None:
            continue
        exact = torch.zeros(table.shape, dtype=torch.float64)
        for axis in range(2):
            window = (table.shape[1 + axis] + 1) // 2
            delta = np.arange(-(window - 1), window, dtype=np.float64)
            scaled = 0 * delta
            if window > 1:
                largest = 2.0 ** (3.0 * float(table[0, ..., axis].max())) - 1
                divisor = 8 * (window - 1) / largest
                assert abs(divisor - round(divisor)) < 1e-4, divisor
                scaled = 8 * delta / round(divisor)
            values = torch.tensor(np.sign(scaled) * np.log2(np.abs(scaled) + 1) / 3)
            exact[0, ..., axis] = values[:, None] if axis == 0 else values[None, :]
        assert (exact - table).abs().max() < 1e-6
        module.relative_coords_table = exact
    return model


def pixels(image, height, width):
    assert height <= image.shape[1] and width <= image.shape[2]
    return torch.tensor(np.asarray(image[None, :, :height, :width], np.float64))


def planar(tensor):
    """[1, C, H, W] to an array [C, H, W]"""
    assert tensor.dtype == torch.float64 and tensor.shape[0] == 1
    return tensor[0].detach().numpy().copy()


def rows(tensor, height, width):
    """[1, H * W, C] to an array [C, H, W]"""
    return planar(tensor.reshape(1, height, width, -1).permute(0, 3, 1, 2))


class Taps:
    """Keeps what passes out of modules during a forward."""

    def __init__(self, modules, keep=lambda module, inputs, output: output):
        self.kept = []
        self.handles = [module.register_forward_hook(lambda m, i, o: self.kept.append(keep(m, i, o)))
                        for module in modules]

    def __enter__(self):
        return self.kept

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()
