# SPDX-License-Identifier: MIT
"""The packages, each asked for the same small networks.

A builder takes a Network, weights under the package's names and options, and gives a module; a runner takes the module,
the picture and a size, and gives one map [C, H, W] per stage in double precision, taken before patch merging.
"""

try:
    import torch_support as ts
except ModuleNotFoundError:  # PaddlePaddle's environment
    ts = None


def with_norms(net):
    return tuple(range(len(net.depths)))


# torchvision ---------------------------------------------------------------------------------------------------------

def torchvision_build(net, state):
    from torchvision.models import swin_transformer as m
    import weights

    kind = {} if net.version == 1 else {"block": m.SwinTransformerBlockV2, "downsample_layer": m.PatchMergingV2}
    return ts.load(m.SwinTransformer([net.patch] * 2, net.embed, list(net.depths), list(net.heads),
                                     list(net.stage_window(0)), mlp_ratio=net.mlp_ratio, num_classes=weights.CLASSES,
                                     **kind), state)


def torchvision_run(model, image, height, width):
    with ts.Taps([m for i, m in enumerate(model.features) if i % 2 == 1]) as kept:
        model(ts.pixels(image, height, width))
    return [ts.planar(x.permute(0, 3, 1, 2)) for x in kept]


# timm ----------------------------------------------------------------------------------------------------------------

def timm_build(net, state, image_size, features=False, strict=True):
    import weights
    if net.version == 1:
        from timm.models.swin_transformer import SwinTransformer as Swin
        from timm.models.swin_transformer import checkpoint_filter_fn
        kind = {}
    else:
        from timm.models.swin_transformer_v2 import SwinTransformerV2 as Swin
        kind = {"pretrained_window_sizes": net.pretrained}
    window = net.stage_window(0)
    model = Swin(img_size=image_size, patch_size=net.patch, num_classes=weights.CLASSES, embed_dim=net.embed,
                 depths=net.depths, num_heads=net.heads, window_size=window, mlp_ratio=net.mlp_ratio,
                 strict_img_size=strict, **kind)
    if features:
        from timm.models._features import FeatureListNet
        model = FeatureListNet(model, out_indices=with_norms(net), flatten_sequential=True, output_fmt="NHWC")
    elif net.version == 1:
        import torch
        tensors = checkpoint_filter_fn({name: torch.tensor(value) for name, value in state.items()}, model)
        state = {name: value.numpy() for name, value in tensors.items()}
    return ts.load(model, state)


def timm_run(model, image, height, width):
    layers = [getattr(model, name) for name in model.keys() if name.startswith("layers_")] if hasattr(model, "keys") \
        else list(model.layers)
    with ts.Taps(layers) as kept:
        model(ts.pixels(image, height, width))
    return [ts.planar(x.permute(0, 3, 1, 2)) for x in kept]


def timm_old_build(net, state, image_size):
    """timm before its renaming: a near copy of Microsoft's classification code."""
    import weights
    if net.version == 1:
        from timm.models.swin_transformer import SwinTransformer as Swin
        kind = {}
    else:
        from timm.models.swin_transformer_v2 import SwinTransformerV2 as Swin
        kind = {"pretrained_window_sizes": net.pretrained}
    return ts.load(Swin(img_size=image_size, patch_size=net.patch, num_classes=weights.CLASSES, embed_dim=net.embed,
                        depths=net.depths, num_heads=net.heads, window_size=net.stage_window(0)[0],
                        mlp_ratio=net.mlp_ratio, ape=bool(net.position), **kind), state)


def timm_old_run(model, image, height, width):
    with ts.Taps([layer.blocks[-1] for layer in model.layers]) as kept:
        model(ts.pixels(image, height, width))
    return [ts.rows(x, *layer.input_resolution) for x, layer in zip(kept, model.layers)]


# Microsoft's detection code, as Grounding DINO carries it ------------------------------------------------------------

def detection_build(net, state):
    import detection_code
    return ts.load(detection_code.load().SwinTransformer(
        pretrain_img_size=net.position * net.patch, patch_size=net.patch, embed_dim=net.embed, depths=list(net.depths),
        num_heads=list(net.heads), window_size=net.stage_window(0)[0], mlp_ratio=net.mlp_ratio, drop_path_rate=0.0,
        ape=bool(net.position), qkv_bias=net.qkv_bias,
        patch_norm=net.patch_norm, out_indices=with_norms(net)), state)


def detection_run(model, image, height, width):
    return [ts.planar(x) for x in model.forward_raw(ts.pixels(image, height, width))]


# mmdet and mmpretrain ------------------------------------------------------------------------------------------------

def mmdet_build(net, state, checkpoint=None, window=None):
    """checkpoint: a file that the package's own initialisation loads, resizing tables to `window`."""
    import openmmlab
    openmmlab.prepare()
    from mmdet.models.backbones.swin import SwinTransformer
    from mmengine.config import ConfigDict

    model = SwinTransformer(pretrain_img_size=net.position * net.patch or 224, embed_dims=net.embed,
                            patch_size=net.patch, window_size=window or net.stage_window(0)[0],
                            mlp_ratio=net.mlp_ratio, depths=net.depths,
                            num_heads=net.heads, out_indices=with_norms(net), strides=(net.patch, 2, 2, 2),
                            init_cfg=ConfigDict(type="Pretrained", checkpoint=checkpoint) if checkpoint else None)
    if checkpoint:
        model = model.double()
        model.init_weights()
        model.eval()
        return model
    return ts.load(model, state)


def mmpretrain_build(net, state, pad_small_map=False, image_size=None, window=None):
    import openmmlab
    openmmlab.prepare()
    from mmpretrain.models.backbones import SwinTransformer, SwinTransformerV2

    arch = {"embed_dims": net.embed, "depths": list(net.depths), "num_heads": list(net.heads)}
    kind = {"window_size": window or net.stage_window(0)[0], "use_abs_pos_embed": bool(net.position)}
    if net.version == 2:
        arch["extra_norm_every_n_blocks"] = net.block_norm
        kind = {"window_size": [net.stage_window(s)[0] for s in range(len(net.depths))],
                "pretrained_window_sizes": list(net.pretrained)}
    cls = SwinTransformer if net.version == 1 else SwinTransformerV2
    ratio = {"block_cfgs": {"ffn_ratio": net.mlp_ratio}} if net.version == 1 else \
        {"block_cfgs": {"ffn_cfgs": {}, "ffn_ratio": net.mlp_ratio}}
    return ts.load(cls(arch=arch, img_size=image_size or net.position * net.patch or 64, patch_size=net.patch,
                       pad_small_map=pad_small_map, out_indices=with_norms(net), stage_cfgs=ratio, **kind), state)


def openmmlab_run(model, image, height, width):
    return [ts.planar(x) for x in model(ts.pixels(image, height, width))]


# transformers --------------------------------------------------------------------------------------------------------

def transformers_build(net, state, kind, image_size=64):
    import transformers as t
    import weights

    config = t.SwinConfig if net.version == 1 else t.Swinv2Config
    options = {} if net.version == 1 else {"pretrained_window_sizes": list(net.pretrained)}
    name = {"classifier": "ForImageClassification", "backbone": "Backbone", "model": "Model"}[kind]
    cls = getattr(t, ("Swin" if net.version == 1 else "Swinv2") + name)
    return ts.load(cls(config(image_size=image_size, patch_size=net.patch, embed_dim=net.embed, depths=list(net.depths),
                              num_heads=list(net.heads), window_size=net.stage_window(0)[0],
                              mlp_ratio=float(net.mlp_ratio), use_absolute_embeddings=bool(net.position),
                              num_labels=weights.CLASSES,
                              out_features=[f"stage{s + 1}" for s in range(len(net.depths))], **options)), state)


def transformers_run(model, image, height, width):
    """A backbone's own maps; of another model what its stages compute before they merge patches."""
    if type(model).__name__.endswith("Backbone"):
        return [ts.planar(x) for x in model(ts.pixels(image, height, width)).feature_maps]
    inner = getattr(model, model.base_model_prefix, model)
    blocks = [layer.blocks[-1] for layer in inner.encoder.layers]
    with ts.Taps(blocks, lambda module, inputs, output: (inputs[1], output[0])) as kept:
        model(ts.pixels(image, height, width))
    return [ts.rows(x, *size) for size, x in kept]


# PaddleDetection -----------------------------------------------------------------------------------------------------

def paddle_build(net, state):
    import paddle
    import detection_paddle

    model = detection_paddle.load().SwinTransformer(
        pretrain_img_size=net.position * net.patch or 224, patch_size=net.patch, embed_dim=net.embed,
        depths=list(net.depths), num_heads=list(net.heads), window_size=net.stage_window(0)[0], mlp_ratio=net.mlp_ratio,
        drop_path_rate=0.0, ape=bool(net.position), out_indices=with_norms(net))
    missing, unexpected = model.set_state_dict({name: paddle.to_tensor(value) for name, value in state.items()})
    assert not unexpected and all(name.endswith("relative_position_index") for name in missing), (missing, unexpected)
    model.eval()
    return model


def paddle_run(model, image, height, width):
    import numpy as np
    import paddle
    batch = paddle.to_tensor(np.ascontiguousarray(image[None, :, :height, :width]))
    return [x.numpy()[0].astype(np.float64) for x in model({"image": batch})]
