# SPDX-License-Identifier: MIT
"""Writes keys/*.txt: what the checkpoints of the published configurations contain, as the packages name it.

    python keys.py GROUP...

A group is what one environment can import; README.md lists the environments. A file holds one naming and looks like
this:

    # comment
    presets swin_tiny_patch4_window7_224 swin_small_patch4_window7_224 ...
    layers.0.blocks.{0,1}.norm1.weight F32 96 96 ...

One line per tensor: its name, safetensors' word for its type, and its shape for each preset, `-` where that preset has
no such tensor and `scalar` for a shape without dimensions. `{0,1}` stands for one tensor per listed number.
"""

import re
import sys
from pathlib import Path

from presets import HUGE, V1, V2

HERE = Path(__file__).resolve().parent


# ---------------------------------------------------------------------------------------------------------------------
# Writing

TYPES = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
         "bool": "BOOL", "uint8": "U8"}


def entries(state):
    """name -> (type, shape) of a state dict of torch or paddle."""
    return {name: (TYPES[str(value.dtype).split(".")[-1]], ",".join(str(d) for d in value.shape) or "scalar")
            for name, value in state.items()}


def write(path, comments, columns):
    """columns: preset name -> entries()."""
    order = []
    for column in columns.values():
        at = 0
        for name in column:  # keep each state dict's own order, new names behind their predecessor
            if name in order:
                at = order.index(name) + 1
            else:
                order.insert(at, name)
                at += 1
    rows = {}
    for name in order:
        types = {column[name][0] for column in columns.values() if name in column}
        assert len(types) == 1, (name, types)
        rows[name] = (types.pop(), tuple(column[name][1] if name in column else "-" for column in columns.values()))

    lines = [f"# {line}" for line in comments] + ["presets " + " ".join(columns)]
    done = set()
    for name, row in rows.items():
        if name in done:
            continue
        numbers = [name]
        match = re.match(r"(.*\b(?:blocks|features\.\d+)\.)(\d+)(\..*)", name)
        if match:
            head, tail = match.group(1), match.group(3)
            pattern = re.compile(re.escape(head) + r"(\d+)" + re.escape(tail))
            numbers = [other for other in rows if pattern.fullmatch(other) and rows[other] == row]
        if len(numbers) > 1:
            digits = ",".join(pattern.fullmatch(other).group(1) for other in numbers)
            done.update(numbers)
            name = f"{head}{{{digits}}}{tail}"
        lines.append(" ".join([name, row[0], *row[1]]))
    path.write_text("\n".join(lines) + "\n")
    print(path.name, len(rows), "tensors,", path.stat().st_size, "bytes")


def emit(name, comments, build, presets):
    """build(preset) gives a module."""
    write(HERE / "keys" / f"{name}.txt", comments,
          {preset.name: entries(build(preset).state_dict()) for preset in presets})


def meta():
    import torch
    return torch.device("meta")


# ---------------------------------------------------------------------------------------------------------------------
# The packages

def torchvision():
    import torchvision
    from torchvision.models import swin_transformer as m

    def build(p):
        kind = {} if p.version == 1 else {"block": m.SwinTransformerBlockV2, "downsample_layer": m.PatchMergingV2}
        with meta():
            return m.SwinTransformer(patch_size=[4, 4], embed_dim=p.embed, depths=list(p.depths),
                                     num_heads=list(p.heads), window_size=[p.window] * 2, **kind)

    about = [f"torchvision {torchvision.__version__}, torchvision.models.SwinTransformer"]
    emit("torchvision", about + ["published: tiny, small and base with window 7"], build, V1)
    emit("v2-torchvision", about, build, [p for p in V2 if p.window == 8])


def timm_current():
    import timm
    from timm.models.swin_transformer import SwinTransformer
    from timm.models.swin_transformer_v2 import SwinTransformerV2
    from timm.models.swin_transformer_v2_cr import SwinTransformerV2Cr

    def build(p, features=False):
        with meta():
            model = (SwinTransformer if p.version == 1 else SwinTransformerV2)(
                img_size=p.image, embed_dim=p.embed, depths=p.depths, num_heads=p.heads, window_size=p.window,
                **({"pretrained_window_sizes": p.stage_pretrained()} if p.version == 2 else {}))
            if features:
                from timm.models._features import FeatureListNet
                model = FeatureListNet(model, out_indices=(0, 1, 2, 3), flatten_sequential=True, output_fmt="NHWC")
            return model

    def build_cr(p):
        with meta():
            return SwinTransformerV2Cr(img_size=p.image, window_size=p.window, embed_dim=p.embed, depths=p.depths,
                                       num_heads=p.heads)

    about = [f"timm {timm.__version__}"]
    emit("timm", about + ["timm.models.swin_transformer.SwinTransformer"], build, V1)
    emit("timm-features", about + ["the same with features_only=True"], lambda p: build(p, True), V1)
    emit("v2-timm", about + ["timm.models.swin_transformer_v2.SwinTransformerV2"], build, V2)
    emit("v2-timm-features", about + ["the same with features_only=True"], lambda p: build(p, True), V2)
    emit("v2-timm-cr", about + ["timm.models.swin_transformer_v2_cr.SwinTransformerV2Cr: another architecture"],
         build_cr,
         [p for p in V2 if p.name in ("swinv2_tiny_patch4_window8_256", "swinv2_base_patch4_window8_256")])


def timm_old():
    import timm
    from timm.models.swin_transformer import SwinTransformer
    from timm.models.swin_transformer_v2 import SwinTransformerV2

    def build(p):
        return (SwinTransformer if p.version == 1 else SwinTransformerV2)(
            img_size=p.image, embed_dim=p.embed, depths=p.depths, num_heads=p.heads, window_size=p.window,
            **({"pretrained_window_sizes": p.stage_pretrained()} if p.version == 2 else {}))

    about = [f"timm {timm.__version__}, a copy of Microsoft's code"]
    emit("microsoft", about + ["Microsoft's own names"], build, V1)
    emit("v2-timm-old", about + ["Microsoft's names, but no stored coordinates and indices"], build, V2)

    # Microsoft's V2 code is on no package index: it stores two tensors that this copy makes without storing them.
    class State:
        def __init__(self, state):
            self.state = state

        def state_dict(self):
            return self.state

    def microsoft(p):
        model = build(p)
        buffers = dict(model.named_buffers())
        state = {}
        for name, value in model.state_dict().items():
            state[name] = value
            if name.endswith("attn.cpb_mlp.2.weight"):
                for buffer in ("relative_coords_table", "relative_position_index"):
                    key = name.replace("cpb_mlp.2.weight", buffer)
                    state[key] = buffers[key]
        return State(state)

    emit("v2-microsoft", about + ["with the two tensors that Microsoft's code stores beside them: derived"],
         microsoft, V2)

    # SimMIM is on no package index either.
    def simmim(p):
        state = {"encoder." + name.replace("cpb_mlp", "rpe_mlp"): value
                 for name, value in microsoft(p).state_dict().items() if not name.startswith("head.")}
        state["encoder.mask_token"] = next(iter(state.values())).new_zeros(1, 1, p.embed)
        state["decoder.0.weight"] = state["encoder.mask_token"].new_zeros(3 * 32 * 32, 8 * p.embed, 1, 1)
        state["decoder.0.bias"] = state["encoder.mask_token"].new_zeros(3 * 32 * 32)
        return State(state)

    emit("v2-simmim", ["v2-microsoft with the prefix of SimMIM, its name of the MLP and its decoder: derived"], simmim,
         [p for p in V2 if p.window == 12])


def transformers(naming):
    import transformers as t

    def config(p):
        common = {"image_size": p.image, "patch_size": 4, "embed_dim": p.embed, "depths": list(p.depths),
                  "num_heads": list(p.heads), "window_size": p.window}
        if p.version == 1:
            return t.SwinConfig(**common, out_features=["stage1", "stage2", "stage3", "stage4"], num_labels=1000)
        return t.Swinv2Config(**common, pretrained_window_sizes=p.stage_pretrained(), num_labels=1000,
                              out_features=["stage1", "stage2", "stage3", "stage4"])

    def builder(cls):
        def build(p):
            if naming == "huggingface4-old":  # reads values while it builds
                return cls(config(p))
            with meta():
                return cls(config(p))
        return build

    def v(name, cls, presets):
        cls = getattr(t, cls, None)
        if cls is not None:
            prefix = "v2-" if presets[0].version == 2 else ""
            emit(f"{prefix}{naming}-{name}", [f"transformers {t.__version__}, {cls.__name__}"], builder(cls), presets)

    if naming == "huggingface4-old":
        v("classifier", "Swinv2ForImageClassification", V2)
        return
    v("classifier", "SwinForImageClassification", V1)
    v("model", "SwinModel", V1)
    v("backbone", "SwinBackbone", V1)
    v("mim", "SwinForMaskedImageModeling", V1[:1])
    v("classifier", "Swinv2ForImageClassification", V2)
    v("model", "Swinv2Model", V2)
    v("backbone", "Swinv2Backbone", V2)
    v("mim", "Swinv2ForMaskedImageModeling", [p for p in V2 if p.window == 12 and p.embed == 128])

    # Whole detectors and segmenters around a tiny backbone.
    def whole(name, build):
        emit(f"{naming}-{name}", [f"transformers {t.__version__}, {name} around SwinBackbone"],
             lambda p: build(config(p)), V1[:1])

    def mask2former(c):
        with meta():
            return t.Mask2FormerForUniversalSegmentation(t.Mask2FormerConfig(backbone_config=c))

    def maskformer(c):
        with meta():
            return t.MaskFormerForInstanceSegmentation(t.MaskFormerConfig(
                backbone_config=c, decoder_config=t.DetrConfig(decoder_layers=1)))

    def upernet(c):
        with meta():
            return t.UperNetForSemanticSegmentation(t.UperNetConfig(backbone_config=c))

    def grounding_dino(c):
        c = t.SwinConfig(**{**c.to_dict(), "out_features": ["stage2", "stage3", "stage4"], "out_indices": [2, 3, 4]})
        with meta():
            return t.GroundingDinoForObjectDetection(t.GroundingDinoConfig(
                backbone_config=c, encoder_layers=1, decoder_layers=2, text_config=t.BertConfig(num_hidden_layers=1)))

    whole("mask2former", mask2former)
    whole("maskformer", maskformer)
    whole("upernet", upernet)
    whole("grounding-dino", grounding_dino)


def openmmlab():
    import openmmlab
    openmmlab.prepare()
    import mmdet
    import mmpretrain
    from mmdet.models.backbones.swin import SwinTransformer as Detection
    from mmpretrain.models import ImageClassifier
    from mmpretrain.registry import MODELS

    openmmlab.scope("mmpretrain")

    def arch(p):
        return {"embed_dims": p.embed, "depths": list(p.depths), "num_heads": list(p.heads)}

    def detection(p):
        return Detection(pretrain_img_size=p.image, embed_dims=p.embed, depths=p.depths, num_heads=p.heads,
                         window_size=p.window, out_indices=(0, 1, 2, 3))

    def classifier(p):
        backbone = {"type": "SwinTransformer", "arch": arch(p), "img_size": p.image, "window_size": p.window}
        if p.version == 2:
            backbone.update(type="SwinTransformerV2", window_size=p.stage_windows(),
                            pretrained_window_sizes=p.stage_pretrained())
            backbone["arch"]["extra_norm_every_n_blocks"] = p.block_norm
        return ImageClassifier(backbone=backbone, neck={"type": "GlobalAveragePooling"},
                               head={"type": "LinearClsHead", "num_classes": 1000, "in_channels": 8 * p.embed})

    def simmim(p):
        backbone = {"type": "SimMIMSwinTransformer", "arch": arch(p), "img_size": p.image,
                    "stage_cfgs": {"block_cfgs": {"window_size": p.window}}}
        return MODELS.build({"type": "SimMIM", "backbone": backbone,
                             "neck": {"type": "SimMIMLinearDecoder", "in_channels": 8 * p.embed, "encoder_stride": 32},
                             "head": {"type": "SimMIMHead", "patch_size": 4,
                                      "loss": {"type": "PixelReconstructionLoss", "criterion": "L1", "channel": 3}}})

    def mask_rcnn(p):
        return openmmlab.mask_rcnn_swin_tiny()

    about = [f"mmpretrain {mmpretrain.__version__}, ImageClassifier"]
    emit("mmpretrain", about, classifier, V1)
    emit("mmpretrain-simmim", [f"mmpretrain {mmpretrain.__version__}, SimMIM"], simmim, V1[:1])
    emit("v2-mmpretrain", about, classifier, V2)
    emit("v2-mmpretrain-huge", about + ["its arch huge, of which no weights were published"], classifier, [HUGE])
    about = [f"mmdet {mmdet.__version__}"]
    emit("mmdetection", about + ["mmdet.models.backbones.swin.SwinTransformer"], detection, V1)
    emit("mmdetection-mask-rcnn", about + ["mask-rcnn_swin-t-p4-w7_fpn_1x_coco"], mask_rcnn, V1[:1])


def groundingdino():
    import detection_code
    m = detection_code.load()

    def build(p):
        return m.SwinTransformer(pretrain_img_size=p.image, embed_dim=p.embed, depths=list(p.depths),
                                 num_heads=list(p.heads), window_size=p.window, out_indices=(0, 1, 2, 3),
                                 drop_path_rate=0.0)

    emit("detection", [f"{detection_code.VERSION}, groundingdino.models.GroundingDINO.backbone.swin_transformer",
                       "a copy of Swin-Transformer-Object-Detection's class"], build, V1)


def paddledet():
    import detection_paddle
    m = detection_paddle.load()

    def build(p):
        return m.SwinTransformer(pretrain_img_size=p.image, embed_dim=p.embed, depths=list(p.depths),
                                 num_heads=list(p.heads), window_size=p.window, out_indices=(0, 1, 2, 3))

    emit("paddledetection", [f"{detection_paddle.VERSION}, ppdet.modeling.backbones.swin_transformer"], build, V1)


GROUPS = {
    "torchvision": torchvision,
    "timm": timm_current,
    "timm-old": timm_old,
    "transformers5": lambda: transformers("huggingface5"),
    "transformers4": lambda: transformers("huggingface4"),
    "transformers4-old": lambda: transformers("huggingface4-old"),
    "openmmlab": openmmlab,
    "detection": groundingdino,
    "paddledet": paddledet,
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or any(name not in GROUPS for name in sys.argv[1:]):
        sys.exit(f"usage: keys.py GROUP...   groups: {' '.join(GROUPS)}")
    (HERE / "keys").mkdir(exist_ok=True)
    for group in sys.argv[1:]:
        GROUPS[group]()
