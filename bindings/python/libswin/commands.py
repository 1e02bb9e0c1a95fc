# SPDX-License-Identifier: MIT
"""The commands of `python3 -m libswin`. Their JSON has the names that swin-dump uses."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
import warnings
from argparse import Namespace
from typing import Any

import numpy as np

from . import library_version
from .config import windows
from .convert import checkpoint
from .errors import ArgumentError, Error
from .files import whole
from .model import Model, load
from .pictures import collect, read
from .progress import Progress

_SHOWN = 24  # names for people; machines get all


def complain(error: BaseException) -> None:
    """One line on stderr."""
    print(f"libswin: {_text(error)}", file=sys.stderr)


def convert(options: Namespace) -> int:
    done = checkpoint(options.source, options.target, options.key)
    words = [f"{options.target}: {done.tensors} tensors, {done.nbytes / 1e6:.1f} MB"]
    if done.key:
        words.append(f"from {done.key!r}")
    if done.others:
        words.append(f"not {', '.join(map(repr, done.others[:4]))}{', ...' if len(done.others) > 4 else ''}")
    if done.skipped:
        words.append(f"without {len(done.skipped)} that safetensors cannot hold ({done.skipped[0]!r}"
                     f"{', ...' if len(done.skipped) > 1 else ''})")
    print(", ".join(words))
    print(f"what it is: swin-dump --weights {shlex.quote(options.target)} --info")
    return 0


def info(options: Namespace) -> int:
    model, _ = _load(options)  # what it would warn of is said
    if options.json:
        print(json.dumps(_description(options.weights, model, names=True), indent=2))
    else:
        _print_info(options.weights, model)
    return 0


def dump(options: Namespace) -> int:
    (model, warned), pictures = _load(options), collect(options.images)
    for each in warned:
        complain(UserWarning(each))
    count, failed = len(pictures.found), []
    progress = Progress(count)
    for path, name, problem in pictures.found:
        try:
            if problem:
                raise ArgumentError(problem)
            line = _dump_one(options, model, path, options.out if pictures.single else os.path.join(options.out, name))
        except (Error, OSError) as error:
            progress.wipe()
            text = _text(error)
            complain(Error(text if text.startswith(f"{path}: ") else f"{path}: {text}"))
            failed.append(path)
        else:
            progress.say(line)
        progress.step(path)
    progress.wipe()
    if pictures.passed_over:
        complain(UserWarning(pictures.passed_over))
    if failed and count > 1:
        rest = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        complain(Error(f"{len(failed)} of {count} images failed: {', '.join(failed[:_SHOWN])}{rest}"))
    return 1 if failed else 0


# ----------------------------------------------------------------------------------------------------------------------

def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return _as_options(" ".join(str(error).split()))


def _as_options(text: str) -> str:
    """Advice to give a keyword, as advice to give an option."""
    return re.sub(r"\((window|pretrained_window|image_size|prefix)=\)",
                  lambda found: f"(--{found[1].replace('_', '-')})", text)


def _load(options: Namespace) -> tuple[Model, list[str]]:
    """The model, and the warnings that came with it."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        model = load(options.weights, lineage=options.lineage, window=options.window,
                     pretrained_window=options.pretrained_window, image_size=options.image_size,
                     out_norm=options.out_norm, prefix=options.prefix, precision=getattr(options, "precision", "f32"))
    return model, [str(each.message).replace(", as window= asks", ", as --window asks") for each in warned]


def _description(label: str, model: Model, names: bool) -> dict[str, Any]:
    config, known = model.config, model.info
    tensors: dict[str, Any] = {
        "used": known.used_count, "ignored": known.ignored_count, "foreign": known.foreign_count,
        "unknown": known.unknown_count, "nonfinite_values": known.nonfinite_count,
    }
    if names:
        tensors.update({f"{use}_names": model.tensor_names(use) for use in ("ignored", "foreign", "unknown")})
    return {
        "weights": label, "name": known.name, "version": config.version, "dialect": known.dialect,
        "lineage": known.lineage, "lineage_reason": known.lineage_reason, "window_reason": known.window_reason,
        "prefix": known.prefix, "dtype": known.dtype, "parameters": known.parameter_count,
        "patch_size": config.patch_size, "embed_dim": config.embed_dim, "depths": config.depths, "heads": config.heads,
        "window": config.window, "pretrained_window": config.pretrained_window, "mlp_ratio": config.mlp_ratio,
        "qkv_bias": config.qkv_bias, "patch_norm": config.patch_norm, "out_norm_levels": config.out_norm,
        "absolute_position": config.absolute_position if any(config.absolute_position) else None,
        "image_size": config.image_size if any(config.image_size) else None,
        "block_norm_period": config.block_norm_period, "block_norm_last_stages": config.block_norm_last,
        "tensors": tensors,
    }


def _print_info(label: str, model: Model) -> None:
    config, known = model.config, model.info
    print(label)
    print(f"  architecture  Swin Transformer V{config.version}{', as ' + known.name if known.name else ''}")
    print(f"  parameters    {known.parameter_count / 1e6:.2f} million ({known.parameter_count}), {known.dtype}")
    behind = f', behind "{known.prefix}"' if known.prefix else ""
    print(f"  naming        {known.dialect}{behind}")
    print(f"  lineage       {known.lineage}: {known.lineage_reason}")
    print(f"  windows       {_as_options(known.window_reason)}")
    if any(config.image_size):
        print(f"  made for      {config.image_size[0]} x {config.image_size[1]} pixels")
    sizes = windows("window", config.window, len(config.depths))
    trained = windows("pretrained_window", config.pretrained_window, len(config.depths))
    column = "pre-trained  " if config.version == 2 else ""
    print(f"\n  level  stride  channels  blocks  heads  window  {column}level norm")
    for shape in model.output_shapes(224, 224):
        s = shape.level
        window = "x".join(map(str, sizes[s]))
        before = f"{'x'.join(map(str, trained[s])) if any(trained[s]) else '-':>11}  " if column else ""
        print(f"  {s} c{s + 2}   {shape.stride:6}  {shape.channels:8}  {config.depths[s]:6}  {config.heads[s]:5}  "
              f"{window:>6}  {before}{'yes' if shape.normed else 'no'}")
    print(f"\n  tensors       {known.used_count} used, {known.ignored_count} ignored, {known.foreign_count} foreign, "
          f"{known.unknown_count} unknown")
    for use, what in (("unknown", "in the backbone, but of no use here"),
                      ("ignored", "derived buffers and classifiers"), ("foreign", "beside the backbone")):
        names = model.tensor_names(use)
        if names:
            print(f"\n  {use}: {what} ({len(names)})")
            for name in names[:_SHOWN]:
                print(f"    {name}")
            if len(names) > _SHOWN:
                print(f"    and {len(names) - _SHOWN} more: --json lists them")


def _dump_one(options: Namespace, model: Model, path: str, directory: str) -> str:
    image = read(path)
    start = time.perf_counter()
    maps = model(image, precision=options.precision, threads=options.threads, levels=options.levels,
                 layout=options.layout, mean=options.mean, std=options.std, bgr=options.bgr, canvas=options.pad_divisor)
    run_ms = (time.perf_counter() - start) * 1e3
    os.makedirs(directory, exist_ok=True)
    chosen = options.levels if options.levels is not None else range(len(model.config.depths))
    levels = []
    for level, values in zip(chosen, maps):
        with whole(os.path.join(directory, f"c{level + 2}.npy")) as out:
            np.save(out, values)
        levels.append({
            "name": f"c{level + 2}", "level": level, "stride": model.config.patch_size << level,
            "shape": values.shape, "min": float(values.min()), "max": float(values.max()),
            "mean": float(values.mean(dtype=np.float64)), "std": float(values.std(dtype=np.float64)),
            "nonfinite": int(values.size - np.isfinite(values).sum()), "files": [f"c{level + 2}.npy"],
        })
    engine = model.session_info(options.precision, options.threads)._asdict()
    summary = {
        "swin": library_version(), "image": {"path": path, "shape": image.shape, "dtype": str(image.dtype)},
        "model": _description(options.weights, model, names=False), "layout": options.layout.upper(), "levels": levels,
        "engine": engine, "timings": {"run_ms": run_ms},
    }
    with whole(os.path.join(directory, "summary.json")) as out:
        out.write((json.dumps(summary, indent=2) + "\n").encode())
    return (f"{path}: {'x'.join(map(str, image.shape))} {image.dtype}, {engine['precision']}, {run_ms:.1f} ms, "
            f"written to {directory}")
