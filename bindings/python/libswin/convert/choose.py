# SPDX-License-Identifier: MIT
"""Finds the weights among what a training run saved: the state dictionary, under whatever key the framework puts it.

The order of preference is that of the frameworks' own loaders:

    timm        state_dict_ema or model_ema before state_dict or model: the averaged weights are the ones published
    RT-DETR     ema.module before model, likewise
    mmengine    state_dict: at save it swaps, so that state_dict holds the averaged weights, ema_state_dict the raw ones
    detectron2  model; older tools model_state (.pyth) or blobs (.pkl)
    DINO, EsViT teacher before student
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple

from ..errors import ConvertError
from .names import Array, Opaque
from .tensors import Tensor

_PREFERRED = ("state_dict_ema", "model_ema", "ema", "state_dict", "model", "model_state", "model_state_dict", "module",
              "params_ema", "params", "weights", "network", "net", "teacher", "student", "backbone", "blobs")
_DEPTH = 6            # of dictionaries above the weights
_MAX_NESTING = 40     # of modules in a module
_MAX_PREFIX = 2000    # characters
_MAX_MODULES = 100_000


class Choice(NamedTuple):
    """What was chosen."""

    tensors: dict[str, Tensor]
    key: str            #: the way to them, "" for the top
    others: list[str]   #: the ways to other weights beside them
    skipped: list[str]  #: tensors of kinds that safetensors has no name for


def choose(top: Any, wanted: str | None = None) -> Choice:
    """The state dictionary of a loaded file, or the one under the dotted key `wanted`."""
    path: list[str] = []
    here, others = top, []
    if wanted is not None:
        for part in wanted.split("."):
            below = _children(here)
            if part not in below:
                raise ConvertError(f"has no {'.'.join(path + [part])!r}; there {_are(below)}")
            path.append(part)
            here = below[part]
        if not _weights(here):
            raise ConvertError(f"holds no tensors under {wanted!r}; there {_are(_children(here))}")
    else:
        while len(path) < _DEPTH:
            step = _step(here, path)
            if step is None:
                break
            others += [".".join(path + [name]) for name, below in _children(here).items()
                       if name != step and _holds(below, _DEPTH)]
            path.append(step)
            here = _children(here)[step]
        if not _weights(here):
            raise ConvertError(_nothing(top))
    found = _weights(here)
    tensors = {name: value for name, value in found.items() if isinstance(value, Tensor)}
    skipped = [name for name in found if name not in tensors]
    return Choice(tensors, ".".join(path), others, skipped)


def _step(here: Any, path: list[str]) -> str | None:
    """The key to go down by, or None where the tensors are here."""
    below = {name: value for name, value in _children(here).items() if _holds(value, _DEPTH - len(path))}
    for name in _PREFERRED:
        if name in below:
            return name
    if _weights(here) or not below:
        return None
    if len(below) > 1:
        raise ConvertError(f"holds tensors under {_listed(below)}: say which with --key")
    return next(iter(below))


def _children(value: Any) -> Mapping[str, Any]:
    """The nested dictionaries and unknown objects of a dictionary, by name."""
    if isinstance(value, Opaque):
        value = value.items or value.state
    if not isinstance(value, dict):
        return {}
    return {name: below for name, below in value.items() if type(name) is str and isinstance(below, (dict, Opaque))}


def _weights(value: Any) -> dict[str, Any]:
    """Everything that is, or was meant to be, a tensor, by its name in the state dictionary."""
    if isinstance(value, Opaque):
        return dict(_module_state(value, "", set())) or _weights(value.items)
    if not isinstance(value, dict):
        return {}
    found = {}
    for name, entry in value.items():
        tensor = _tensor(entry)
        if tensor is not None and type(name) is str:
            found[name] = _bfloat16(tensor) if "StructuredToParameterName@@" in value else tensor
    return found if any(isinstance(entry, Tensor) for entry in found.values()) else {}


def _tensor(entry: Any) -> Any:
    """A tensor, an unusable one (Opaque), or None for anything else."""
    if isinstance(entry, tuple) and len(entry) == 2 and type(entry[0]) is str and isinstance(entry[1], Array):
        return _bfloat16(_tensor(entry[1]))  # paddle.save of a tensor by itself: its name and its array
    if isinstance(entry, Array):
        return entry.tensor if entry.tensor is not None else Opaque("numpy.ndarray")
    if isinstance(entry, Tensor) or isinstance(entry, Opaque) and entry.kind.startswith("torch.Tensor"):
        return entry
    return None


def _module_state(module: Opaque, prefix: str, seen: set[int]) -> Iterable[tuple[str, Any]]:
    """A module that was pickled whole, as its state_dict() would list it; its code is not needed for that."""
    state = module.state
    too_many = len(seen) > _MAX_MODULES or prefix.count(".") > _MAX_NESTING or len(prefix) > _MAX_PREFIX
    if not isinstance(state, dict) or id(module) in seen or too_many:
        return
    seen.add(id(module))
    transient = state.get("_non_persistent_buffers_set")
    for group in ("_parameters", "_buffers"):
        for name, entry in _dictionary(state.get(group)).items():
            tensor = _tensor(entry)
            dropped = group == "_buffers" and isinstance(transient, list) and name in transient
            if tensor is not None and type(name) is str and not dropped:
                yield f"{prefix}{name}", tensor
    for name, below in _dictionary(state.get("_modules")).items():
        if isinstance(below, Opaque) and type(name) is str:
            yield from _module_state(below, f"{prefix}{name}.", seen)


def _dictionary(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _holds(value: Any, depth: int) -> bool:
    """Whether there are weights at `value` or below it. A dictionary that is reached twice is looked at once."""
    level, seen = [value], set()
    for _ in range(depth + 1):
        below: list[Any] = []
        for here in level:
            if id(here) not in seen:
                seen.add(id(here))
                if _weights(here):
                    return True
                below += _children(here).values()
        level = below
    return False


def _bfloat16(tensor: Any) -> Any:
    """Paddle hands bfloat16 to numpy as uint16, and has no uint16 of its own."""
    if isinstance(tensor, Tensor) and tensor.dtype == "U16":
        tensor.dtype = "BF16"
    return tensor


def _nothing(top: Any) -> str:
    """What to say of a file without weights."""
    if isinstance(top, Opaque):
        return f"holds no tensors, but an object of the class {top.kind[:100]}: there is nothing to convert"
    if isinstance(top, dict):
        below = _children(top)
        where = f", neither at the top nor under {_listed(below)}" if below else ""
        return f"holds no tensors{where}: there is nothing to convert"
    kind = "a single tensor" if isinstance(top, (Tensor, Array)) else "a list" if isinstance(top, (list, tuple)) else ""
    return f"holds no dictionary of tensors{f', but {kind}' if kind else ''}: there is nothing to convert"


def _are(below: Mapping[str, Any]) -> str:
    return f"are the dictionaries {_listed(below)}" if below else "are no dictionaries"


def _listed(below: Iterable[str]) -> str:
    shown = [repr(name[:60]) for name in below]
    return ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "")
