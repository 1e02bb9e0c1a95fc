# SPDX-License-Identifier: MIT
"""What torch.compile is not to look into; imported when it first meets a `Backbone`."""

from __future__ import annotations

from typing import Any

import torch


@torch.compiler.disable
def compute(backbone: Any, images: torch.Tensor) -> Any:
    return backbone._compute(images)
