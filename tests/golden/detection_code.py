# SPDX-License-Identifier: MIT
"""Microsoft's detection code (Swin-Transformer-Object-Detection) is on no package index; Grounding DINO's package
carries a copy of its backbone, which is loaded here alone, without the rest of that package."""

import importlib.metadata
import importlib.util
import sys
import types
from pathlib import Path

PACKAGE = "groundingdino-py"
VERSION = f"{PACKAGE} {importlib.metadata.version(PACKAGE)}"


def load():
    root = Path(str(importlib.metadata.distribution(PACKAGE).locate_file("groundingdino")))
    for name in ("groundingdino", "groundingdino.util"):  # empty packages: no __init__ is run
        module = types.ModuleType(name)
        module.__path__ = [str(root / Path(*name.split(".")[1:]))]
        sys.modules.setdefault(name, module)
    misc = types.ModuleType("groundingdino.util.misc")
    misc.NestedTensor = object  # what the class takes in place of plain tensors
    sys.modules.setdefault("groundingdino.util.misc", misc)
    spec = importlib.util.spec_from_file_location(
        "detection_swin_transformer", root / "models/GroundingDINO/backbone/swin_transformer.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
