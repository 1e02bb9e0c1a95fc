# SPDX-License-Identifier: MIT
"""Writes the small networks and what the packages compute from them.

    python generate.py GROUP...

README.md lists the groups with their environments, and the order: the first group to name an expectation writes it, the
later ones are compared with it and stop where they differ.
"""

import sys
from collections import namedtuple

import fixture
import naming
import weights
from weights import Network

IMAGE = weights.image()
V1 = Network()
V2 = Network(version=2, depths=(1, 2, 1))
POSITION = Network(depths=(2,), heads=(2,), position=4)
PLAIN = Network(depths=(2,), heads=(2,), qkv_bias=False, patch_norm=False, mlp_ratio=3)
FOUR = Network(embed=4, depths=(1, 1, 2, 1), heads=(1, 1, 2, 2), window=5, mlp_ratio=4)
RECTANGLE = Network(depths=(2,), heads=(2,), windows=((3, 5),), patch=2)
SHARP = Network(version=2, depths=(2,), heads=(4,), window=2, sharp=True)
BLOCK_NORM = Network(version=2, depths=(3,), heads=(2,), block_norm=2)
DETECTION = [(1, 1), (16, 16), (33, 47), (64, 32)]


def about(package, cls, **more):
    import importlib.metadata
    return {"package": f"{package} {importlib.metadata.version(package)}", "class": cls, **more}


def run(runner, model, sizes):
    import torch_support
    model = torch_support.double(model)
    return [(h, w, runner(model, IMAGE, h, w)) for h, w in sizes]


# ---------------------------------------------------------------------------------------------------------------------

def image():
    fixture.write("image.safetensors", {"image": IMAGE}, {"what": "normalised pixels [3, height, width]"})


def detection():
    import packages as p
    import torch_support as ts
    info = about("groundingdino-py", "backbone.swin_transformer.SwinTransformer", lineage="detection", out_norm="yes")

    model = p.detection_build(V1, naming.detection(weights.make(V1)))
    fixture.write_weights("v1-detection.safetensors", ts.arrays(model), "F32", info)
    attention = ts.Taps([model.layers[1].blocks[1].attn.attn_drop])
    cases = run(p.detection_run, model, DETECTION)
    probabilities = attention.kept[DETECTION.index((33, 47))]
    fixture.expect("v1-detection.expect.safetensors", cases, info, True,
                   {"attention.1.1.2": probabilities.detach().numpy()})
    assert len(attention.kept) == len(DETECTION)

    for name, net, sizes in (("position", POSITION, [(1, 1), (16, 16), (33, 20)]), ("plain", PLAIN, [(33, 20)]),
                             ("four", FOUR, [(50, 70), (20, 20)])):
        model = p.detection_build(net, naming.detection(weights.make(net)))
        fixture.write_weights(f"v1-{name}.safetensors", ts.arrays(model), "F16", info)
        fixture.expect(f"v1-{name}.expect.safetensors", run(p.detection_run, model, sizes), info, True)

    # No package has V2 under the names of detection: these are Microsoft's with the norms of levels beside them.
    fixture.write("v2-detection.safetensors", naming.detection(weights.make(V2)), {"package": "none: derived names"})


def openmmlab():
    import os
    import tempfile

    import packages as p
    import torch
    import torch_support as ts
    own = naming.openmmlab(weights.make(V1), 1)

    info = about("mmdet", "SwinTransformer", lineage="detection", out_norm="yes")
    model = p.mmdet_build(V1, own)
    fixture.write_weights("v1-mmdetection.safetensors", ts.arrays(model), "F16", info)
    fixture.expect("v1-detection.expect.safetensors", run(p.openmmlab_run, model, DETECTION), info, False)

    # The package's own way from one window to another, in double precision.
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.pth")
        torch.save({"state_dict": {f"backbone.{name}": torch.tensor(value).double() for name, value in own.items()}},
                   path)
        model = p.mmdet_build(V1, own, checkpoint=path, window=6)
    fixture.expect("v1-window6-bicubic.expect.safetensors", run(p.openmmlab_run, model, [(33, 47)]),
                   {**info, "window": "6", "resize": "bicubic"}, True)

    info = about("mmpretrain", "SwinTransformer", lineage="detection", out_norm="yes", pad_small_map="yes")
    model = p.mmpretrain_build(V1, own, pad_small_map=True)
    fixture.expect("v1-detection.expect.safetensors", run(p.openmmlab_run, model, DETECTION), info, False)
    info = about("mmpretrain", "SwinTransformer", lineage="mmpretrain", out_norm="yes")
    model = p.mmpretrain_build(V1, own)
    head = {f"head.fc.{part}": weights.make(V1)[f"head.{part}"] for part in ("weight", "bias")}
    fixture.write_weights("v1-mmpretrain.safetensors", {
        **{f"backbone.{name}": value for name, value in ts.arrays(model).items()}, **head}, "BF16", info)
    fixture.expect("v1-mmpretrain.expect.safetensors", run(p.openmmlab_run, model, [(64, 80)]), info, True)
    model = p.mmpretrain_build(V1, ts.arrays(model), window=5)
    fixture.expect("v1-window5-geometric.expect.safetensors", run(p.openmmlab_run, model, [(68, 68)]),
                   {**info, "window": "5", "resize": "geometric, scipy"}, True)

    own = naming.openmmlab(weights.make(V2), 2)
    info = about("mmpretrain", "SwinTransformerV2", lineage="detection", out_norm="yes", pad_small_map="yes")
    model = p.mmpretrain_build(V2, own, pad_small_map=True)
    fixture.expect("v2-detection.expect.safetensors", run(p.openmmlab_run, model, DETECTION), info, True)
    info = about("mmpretrain", "SwinTransformerV2", lineage="mmpretrain", out_norm="yes")
    model = p.mmpretrain_build(V2, own)
    fixture.write_weights("v2-mmpretrain.safetensors", {
        **{f"backbone.{name}": value for name, value in ts.arrays(model).items()}, **head}, "F16", info)
    fixture.expect("v2-mmpretrain.expect.safetensors", run(p.openmmlab_run, model, [(64, 64)]), info, True)
    # Scales of 100: a mask of -100 keeps regions apart no longer, and transformers' -200 is another thing.
    model = p.mmpretrain_build(SHARP, naming.openmmlab(weights.make(SHARP), 2))
    fixture.write_weights("v2-sharp-mmpretrain.safetensors", {
        **{f"backbone.{name}": value for name, value in ts.arrays(model).items()}, **head}, "F16", info)
    fixture.expect("v2-sharp-mmpretrain.expect.safetensors", run(p.openmmlab_run, model, [(36, 48)]), info, True)
    model = p.mmpretrain_build(BLOCK_NORM, naming.openmmlab(weights.make(BLOCK_NORM), 2))
    fixture.write_weights("v2-block-norm.safetensors", {
        **{f"backbone.{name}": value for name, value in ts.arrays(model).items()}, **head}, "F16", info)
    fixture.expect("v2-block-norm.expect.safetensors", run(p.openmmlab_run, model, [(33, 20)]), info, True)

    # This package resizes the position embedding in single precision.
    info = about("mmpretrain", "SwinTransformer", lineage="mmpretrain", out_norm="yes")
    model = p.mmpretrain_build(POSITION, naming.openmmlab(weights.make(POSITION), 1))
    fixture.write_weights("v1-mmpretrain-position.safetensors", {
        **{f"backbone.{name}": value for name, value in ts.arrays(model).items()}, **head}, "F16", info)
    fixture.expect("v1-mmpretrain-position.expect.safetensors", run(p.openmmlab_run, model, [(16, 16), (33, 20)]),
                   info, True)


def torchvision():
    import packages as p
    import torch_support as ts
    info = about("torchvision", "SwinTransformer", lineage="torchvision", out_norm="no")
    model = p.torchvision_build(V1, naming.torchvision(weights.make(V1), 1))
    fixture.write_weights("v1-torchvision.safetensors", ts.arrays(model), "F32", info)
    fixture.expect("v1-torchvision.expect.safetensors",
                   run(p.torchvision_run, model, [(4, 7), (16, 16), (33, 47), (64, 32)]), info, True)

    info = about("torchvision", "SwinTransformer", block="SwinTransformerBlockV2", lineage="torchvision", out_norm="no")
    model = p.torchvision_build(V2, naming.torchvision(weights.make(V2), 2))
    fixture.write_weights("v2-torchvision.safetensors", ts.arrays(model), "BF16", info)
    fixture.expect("v2-torchvision.expect.safetensors",
                   run(p.torchvision_run, model, [(16, 16), (33, 47), (64, 32)]), info, True)


def timm():
    import packages as p
    import torch_support as ts
    state = weights.make(V1)
    sizes = [(64, 64), (36, 48), (16, 16), (64, 32)]
    info = about("timm", "SwinTransformer", lineage="timm", out_norm="no", image_size="64,64")
    model = p.timm_build(V1, naming.timm(state), 64, strict=False)
    fixture.write_weights("v1-timm.safetensors", ts.arrays(model), "BF16", info)
    fixture.expect("v1-timm.expect.safetensors", run(p.timm_run, model, sizes), info, True)
    model = p.timm_build(V1, naming.timm_features(state), 64, features=True, strict=False)
    fixture.write_weights("v1-timm-features.safetensors", ts.arrays(model), "F16", {**info, "class": "FeatureListNet"})
    fixture.expect("v1-timm.expect.safetensors", run(p.timm_run, model, sizes), {**info, "class": "FeatureListNet"},
                   False)

    # Windows clamped per axis to another image, or chosen larger: the tables are resized.
    for name, net, size in (("24x48", V1, (24, 48)), ("window5", Network(window=5), (48, 48)),
                            ("window6", Network(window=6), (48, 56))):
        model = p.timm_build(net, naming.timm(state), size)
        fixture.expect(f"v1-timm-{name}.expect.safetensors", run(p.timm_run, model, [size]),
                       {**info, "image_size": f"{size[0]},{size[1]}", "resize": "geometric, linear"}, True)

    info = about("timm", "SwinTransformer", lineage="timm", out_norm="no", image_size="36,48")
    model = p.timm_build(RECTANGLE, naming.timm(weights.make(RECTANGLE)), (20, 26))
    fixture.write_weights("v1-timm-rectangle.safetensors", ts.arrays(model), "F16", info)
    fixture.expect("v1-timm-rectangle.expect.safetensors", run(p.timm_run, model, [(20, 26)]), info, True)

    state = weights.make(V2)
    info = about("timm", "SwinTransformerV2", lineage="timm", out_norm="no", image_size="64,64")
    sizes = [(64, 64), (36, 48), (64, 32)]
    model = p.timm_build(V2, naming.timm(state), 64, strict=False)
    fixture.write_weights("v2-timm.safetensors", ts.arrays(model), "F16", info)
    fixture.expect("v2-timm.expect.safetensors", run(p.timm_run, model, sizes), info, True)
    model = p.timm_build(V2, naming.timm_features(state), 64, features=True, strict=False)
    fixture.write_weights("v2-timm-features.safetensors", ts.arrays(model), "BF16", {**info, "class": "FeatureListNet"})
    fixture.expect("v2-timm.expect.safetensors", run(p.timm_run, model, sizes), {**info, "class": "FeatureListNet"},
                   False)
    # A map of 9 is halved to 5 here; up to version 1.0.26 the package took it for 4, which is one window.
    model = p.timm_build(V2, naming.timm(state), 36)
    fixture.expect("v2-timm-36.expect.safetensors", run(p.timm_run, model, [(36, 36)]),
                   {**info, "image_size": "36,36"}, True)


def timm_old():
    import packages as p
    import torch_support as ts
    info = about("timm", "SwinTransformer", lineage="microsoft", out_norm="no", image_size="64,64")
    state = naming.microsoft(weights.make(V1))
    model = p.timm_old_build(V1, state, 64)
    fixture.write_weights("v1-microsoft.safetensors", ts.arrays(model), "F16", info)
    cases = run(p.timm_old_run, model, [(64, 64)])
    fixture.expect("v1-microsoft.expect.safetensors", cases, info, True)

    # Native at 32 x 32: the last stage's map is smaller than the window, and so is its table.
    small = Network(windows=(4, 4, 2))
    state = naming.microsoft(weights.make(small))
    info = {**info, "image_size": "32,32"}
    model = p.timm_old_build(small, state, 32)
    fixture.write_weights("v1-microsoft-32.safetensors", ts.arrays(model), "F16", info)
    cases = run(p.timm_old_run, model, [(32, 32)])
    model = p.timm_old_build(small, state, (32, 64))
    cases += run(p.timm_old_run, model, [(32, 64)])
    fixture.expect("v1-microsoft-32.expect.safetensors", cases, info, True)

    info = about("timm", "SwinTransformer", lineage="microsoft", out_norm="no", image_size="16,16")
    model = p.timm_old_build(POSITION, naming.microsoft(weights.make(POSITION)), 16)
    fixture.write_weights("v1-microsoft-position.safetensors", ts.arrays(model), "F16", info)
    fixture.expect("v1-microsoft-position.expect.safetensors", run(p.timm_old_run, model, [(16, 16)]), info, True)

    state = naming.microsoft(weights.make(V2))
    info = about("timm", "SwinTransformerV2", lineage="microsoft", out_norm="no")
    model = p.timm_old_build(V2, state, 64)
    fixture.write_weights("v2-timm-old.safetensors", ts.arrays(model), "F16", info)
    stored = {**ts.arrays(model), **{name: buffer.numpy() for name, buffer in model.named_buffers()}}
    fixture.write_weights("v2-microsoft.safetensors", stored, "BF16",
                          {**info, "buffers": "stored as Microsoft's code does"})
    attention = ts.Taps([model.layers[1].blocks[1].attn.attn_drop])
    cases = run(p.timm_old_run, model, [(64, 64)])
    probabilities = attention.kept[0].detach().numpy()
    for size in [(32, 32)]:  # the last stage's window is a small map
        cases += run(p.timm_old_run, p.timm_old_build(V2, state, size), [size])
    fixture.expect("v2-microsoft.expect.safetensors", cases, info, True, {"attention.1.1.0": probabilities})

    trained = Network(**{**V2.__dict__, "pretrained": (3, 3, 2)})
    model = p.timm_old_build(trained, state, 64)
    fixture.expect("v2-pretrained.expect.safetensors", run(p.timm_old_run, model, [(64, 64)]),
                   {**info, "pretrained_window": "3,3,2"}, True)

    # SimMIM's names are in no package.
    one = Network(version=2, depths=(2,), heads=(2,))
    model = p.timm_old_build(one, naming.microsoft(weights.make(one)), 32)
    renamed = {"encoder." + name.replace("cpb_mlp", "rpe_mlp"): value
               for name, value in {**ts.arrays(model), **dict((n, b.numpy()) for n, b in model.named_buffers())}.items()
               if not name.startswith("head.")}
    renamed["encoder.mask_token"] = weights.random(one, "mask_token", (1, 1, 8), 1.0)
    renamed["decoder.0.bias"] = weights.random(one, "decoder", (48,), 1.0)
    fixture.write_weights("v2-simmim.safetensors", renamed, "F16", {"package": "none: derived names"})
    fixture.expect("v2-simmim.expect.safetensors", run(p.timm_old_run, model, [(32, 32)]), info, True)


def transformers(naming_of, generation):
    import packages as p
    import torch_support as ts
    state = weights.make(V1)

    info = about("transformers", "SwinBackbone", lineage="detection", out_norm="yes")
    prefix = "swin." if generation == 5 else ""
    model = p.transformers_build(V1, naming_of(state, prefix, "backbone"), "backbone")
    fixture.write_weights(f"v1-huggingface{generation}-backbone.safetensors", ts.arrays(model), "F16", info)
    fixture.expect("v1-detection.expect.safetensors", run(p.transformers_run, model, DETECTION), info, False)

    info = about("transformers", "SwinForImageClassification", lineage="huggingface", out_norm="no")
    cases = []
    for size in [(68, 68), (64, 80)]:  # a model remembers the windows of the smallest image it has seen
        model = p.transformers_build(V1, naming_of(state, "swin.", "classifier"), "classifier")
        if not cases:
            fixture.write_weights(f"v1-huggingface{generation}-classifier.safetensors", ts.arrays(model), "BF16", info)
        cases += run(p.transformers_run, model, [size])
    fixture.expect("v1-huggingface.expect.safetensors", cases, info, generation == 4)

    if generation == 5:
        info = about("transformers", "SwinModel", lineage="huggingface", out_norm="no", image_size="16,16")
        model = p.transformers_build(POSITION, naming_of(weights.make(POSITION), "", "model"), "model", 16)
        fixture.write_weights("v1-huggingface5-position.safetensors", ts.arrays(model), "F16", info)
        fixture.expect("v1-microsoft-position.expect.safetensors", run(p.transformers_run, model, [(16, 16)]), info,
                       False)
    transformers_v2(generation == 4)


def transformers_v2(owner):
    import packages as p
    import torch_support as ts
    state = weights.make(V2)
    sizes = [(64, 64), (36, 48), (64, 32)]
    info = about("transformers", "Swinv2ForImageClassification", lineage="huggingface", out_norm="no",
                 image_size="64,64")
    model = p.transformers_build(V2, naming.huggingface4(state, "swinv2.", "classifier"), "classifier")
    if owner:
        fixture.write_weights("v2-huggingface-classifier.safetensors", ts.arrays(model), "F16", info)
    fixture.expect("v2-huggingface.expect.safetensors", run(p.transformers_run, model, sizes), info, owner)
    info["class"] = "Swinv2Backbone"
    model = p.transformers_build(V2, naming.drop(naming.huggingface4(state, "", "backbone"), "hidden_states_norms"),
                                 "backbone")
    if owner:
        fixture.write_weights("v2-huggingface-backbone.safetensors", ts.arrays(model), "BF16", info)
    fixture.expect("v2-huggingface.expect.safetensors", run(p.transformers_run, model, sizes), info, False)

    info["class"] = "Swinv2ForImageClassification"
    model = p.transformers_build(SHARP, naming.huggingface4(weights.make(SHARP), "swinv2.", "classifier"), "classifier")
    if owner:
        fixture.write_weights("v2-sharp-huggingface.safetensors", ts.arrays(model), "F16", info)
    fixture.expect("v2-sharp-huggingface.expect.safetensors", run(p.transformers_run, model, [(36, 48)]), info, owner)

    # Configured for 32 pixels: the last stage's window becomes its map of two rows.
    info["image_size"] = "32,32"
    model = p.transformers_build(V2, naming.huggingface4(state, "swinv2.", "classifier"), "classifier", 32)
    fixture.expect("v2-huggingface-32.expect.safetensors", run(p.transformers_run, model, [(32, 32), (36, 48)]), info,
                   owner)


def transformers_old():
    """Version 4.30 decides V2's windows anew for each image and fails where one shrinks."""
    import packages as p
    info = about("transformers", "Swinv2ForImageClassification")
    model = p.transformers_build(V2, naming.huggingface4(weights.make(V2), "swinv2.", "classifier"), "classifier")
    fixture.expect("v2-huggingface.expect.safetensors", run(p.transformers_run, model, [(64, 64)]), info, False)


def paddledet():
    import packages as p
    info = about("paddledet", "SwinTransformer", lineage="detection", out_norm="yes")
    model = p.paddle_build(V1, naming.paddle(weights.make(V1)))
    fixture.write_weights("v1-paddledetection.safetensors", {k: v.numpy() for k, v in model.state_dict().items()},
                          "F16", info)
    # Single precision: the package has masks in no other. Odd maps stop it at their first merge.
    fixture.expect("v1-detection.expect.safetensors", [(64, 32, p.paddle_run(model, IMAGE, 64, 32))], info, False,
                   tolerance=2e-6)


GROUPS = {
    "image": image,
    "detection": detection,
    "openmmlab": openmmlab,
    "torchvision": torchvision,
    "timm": timm,
    "timm-old": timm_old,
    "transformers4": lambda: transformers(naming.huggingface4, 4),
    "transformers5": lambda: transformers(naming.huggingface5, 5),
    "transformers4-old": transformers_old,
    "paddledet": paddledet,
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or any(name not in GROUPS for name in sys.argv[1:]):
        sys.exit(f"usage: generate.py GROUP...   groups: {' '.join(GROUPS)}")
    for group in sys.argv[1:]:
        GROUPS[group]()
