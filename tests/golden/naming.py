# SPDX-License-Identifier: MIT
"""Weights under the names, and in the shapes, of each package, from the names of weights.py."""

import re

import numpy as np


def drop(state, *patterns):
    return {name: value for name, value in state.items() if not any(re.match(p, name) for p in patterns)}


def rename(state, *rules):
    renamed = {}
    for name, value in state.items():
        for pattern, replacement in rules:
            name = re.sub(pattern, replacement, name)
        renamed[name] = value
    return renamed


def detection(state):
    return drop(state, r"norm\.", r"head\.")


def microsoft(state):
    state = drop(state, r"norm\d\.")
    if "absolute_pos_embed" in state:
        state["absolute_pos_embed"] = tokens(state["absolute_pos_embed"])
    return state


def tokens(embedding):
    """[1, E, h, w] to [1, h * w, E]"""
    return np.ascontiguousarray(embedding[0].reshape(embedding.shape[1], -1).T[None])


def later_downsample(state, first, then):
    """Patch merging opens the next stage instead of closing its own."""
    return {re.sub(rf"^{first}\.(\d+)\.downsample", lambda m: f"{then}.{int(m[1]) + 1}.downsample", name): value
            for name, value in state.items()}


def timm(state):
    state = later_downsample(drop(state, r"norm\d\."), "layers", "layers")
    return rename(state, (r"^head\.", "head.fc."))


def timm_features(state):
    return rename(drop(timm(state), r"norm\.", r"head\."), (r"^layers\.", "layers_"))


def openmmlab(state, version):
    """The columns of a merge are ordered as unfold does: channel first, then row and column of the 2 x 2 patch."""
    state = drop(state, r"norm\.", r"head\.")
    for name, value in list(state.items()):
        if ".downsample.reduction." in name or (version == 1 and ".downsample.norm." in name):
            by_place = value.reshape(-1, 4, value.shape[-1] // 4)  # place: (0,0) (1,0) (0,1) (1,1) in (row, column)
            by_channel = np.swapaxes(by_place[:, [0, 2, 1, 3]], 1, 2)  # place: (0,0) (0,1) (1,0) (1,1)
            state[name] = np.ascontiguousarray(by_channel.reshape(value.shape))
    if "absolute_pos_embed" in state:
        state["absolute_pos_embed"] = tokens(state["absolute_pos_embed"])
    state = rename(state, (r"^patch_embed\.proj\.", "patch_embed.projection."), (r"^layers\.", "stages."),
                   (r"\.attn\.", ".attn.w_msa."), (r"\.mlp\.fc1\.", ".ffn.layers.0.0."),
                   (r"\.mlp\.fc2\.", ".ffn.layers.1."))
    return later_downsample(state, "stages", "stages") if version == 2 else state


def torchvision(state, version):
    state = drop(state, r"norm\d\.")
    renamed = {}
    for name, value in state.items():
        name = re.sub(r"^patch_embed\.proj\.", "features.0.0.", name)
        name = re.sub(r"^patch_embed\.norm\.", "features.0.2.", name)
        name = re.sub(r"^layers\.(\d+)\.blocks\.", lambda m: f"features.{2 * int(m[1]) + 1}.", name)
        name = re.sub(r"^layers\.(\d+)\.downsample\.", lambda m: f"features.{2 * int(m[1]) + 2}.", name)
        name = name.replace(".mlp.fc1.", ".mlp.0.").replace(".mlp.fc2.", ".mlp.3.")
        renamed[name] = value
    if version == 2:
        for name in [name for name in renamed if name.endswith("q_bias")]:
            q, v = renamed.pop(name), renamed.pop(name.replace("q_bias", "v_bias"))
            key = np.full_like(q, 0.75)  # stored by the package, and without effect
            renamed[name.replace("q_bias", "qkv.bias")] = np.concatenate([q, key, v])
    return renamed


def split_qkv(state, query, key, value):
    split = {}
    for name, tensor in state.items():
        if ".attn.qkv." in name:
            for part, into in zip(np.split(tensor, 3), (query, key, value)):
                split[name.replace("attn.qkv", into)] = part
        else:
            split[name] = tensor
    return rename(split, (r"attn\.q_bias$", f"{query}.bias"), (r"attn\.v_bias$", f"{value}.bias"))


def huggingface_outside(state, prefix, kind):
    """What lies around the blocks; kind: "classifier", "model" or "backbone"."""
    state = drop(state, r"norm\.", r"head\.") if kind == "backbone" else drop(state, r"norm\d\.")
    if kind == "model":
        state = drop(state, r"head\.")
    if "absolute_pos_embed" in state:
        state["absolute_pos_embed"] = tokens(state["absolute_pos_embed"])
    state = {re.sub(r"^norm(\d)\.", lambda m: f"hidden_states_norms.stage{int(m[1]) + 1}.", name): value
             for name, value in state.items()}
    return rename(state, (r"^patch_embed\.proj\.", f"{prefix}embeddings.patch_embeddings.projection."),
                  (r"^patch_embed\.norm\.", f"{prefix}embeddings.norm."),
                  (r"^absolute_pos_embed$", f"{prefix}embeddings.position_embeddings"),
                  (r"^layers\.", f"{prefix}encoder.layers."), (r"^norm\.", f"{prefix}layernorm."),
                  (r"^head\.", "classifier."))


def huggingface4(state, prefix="", kind="classifier"):
    state = split_qkv(huggingface_outside(state, prefix, kind),
                      "attention.self.query", "attention.self.key", "attention.self.value")
    return rename(state, (r"\.attn\.proj\.", ".attention.output.dense."), (r"\.attn\.cpb_mlp\.",
                  ".attention.self.continuous_position_bias_mlp."), (r"\.attn\.", ".attention.self."),
                  (r"\.norm1\.", ".layernorm_before."), (r"\.norm2\.", ".layernorm_after."),
                  (r"\.mlp\.fc1\.", ".intermediate.dense."), (r"\.mlp\.fc2\.", ".output.dense."))


def huggingface5(state, prefix="", kind="classifier"):
    """V1 alone: transformers 5 keeps the older names in V2."""
    state = split_qkv(huggingface_outside(state, prefix, kind), "attention.q_proj", "attention.k_proj",
                      "attention.v_proj")
    return rename(state, (r"\.attn\.proj\.", ".attention.o_proj."),
                  (r"\.attn\.relative_position_bias_table$",
                   ".attention.relative_position_bias.relative_position_bias_table"),
                  (r"\.norm1\.", ".layernorm_before."), (r"\.norm2\.", ".layernorm_after."))


def paddle(state):
    """Linear weights are [in, out]."""
    return {name: np.ascontiguousarray(value.T) if value.ndim == 2 and name.endswith(".weight") else value
            for name, value in detection(state).items()}
