# SPDX-License-Identifier: MIT
"""mmdet and mmpretrain without mmcv's compiled operators, which Swin does not use."""

import sys
import types
from pathlib import Path


def prepare():
    """Call it before mmdet or mmpretrain is imported."""
    class Operators(types.ModuleType):
        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *args, **kwargs: None

    sys.modules.setdefault("mmcv._ext", Operators("mmcv._ext"))


def scope(name):
    """Both packages register parts under the same names; this says whose are meant from here on."""
    from mmengine.registry import DefaultScope

    DefaultScope.get_instance(f"golden-{name}", scope_name=name)


def mask_rcnn_swin_tiny():
    import mmdet
    from mmdet.registry import MODELS
    from mmengine.config import Config

    scope("mmdet")
    config = Config.fromfile(Path(mmdet.__file__).parent / ".mim/configs/swin/mask-rcnn_swin-t-p4-w7_fpn_1x_coco.py")
    config.model.backbone.init_cfg = None
    return MODELS.build(config.model)
