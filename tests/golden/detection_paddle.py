# SPDX-License-Identifier: MIT
"""PaddleDetection's backbone alone, without the rest of that package and what it needs."""

import importlib
import importlib.metadata
import sys
import types
from pathlib import Path

VERSION = (f"paddledet {importlib.metadata.version('paddledet')}, "
           f"paddlepaddle {importlib.metadata.version('paddlepaddle')}")


def load():
    root = Path(str(importlib.metadata.distribution("paddledet").locate_file("ppdet")))
    for name in ("ppdet", "ppdet.modeling", "ppdet.modeling.backbones"):  # empty packages: no __init__ is run
        module = types.ModuleType(name)
        module.__path__ = [str(root / Path(*name.split(".")[1:]))]
        sys.modules.setdefault(name, module)
    return importlib.import_module("ppdet.modeling.backbones.swin_transformer")
