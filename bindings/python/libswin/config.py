# SPDX-License-Identifier: MIT
"""What a Swin Transformer is made of, as Python values."""

from __future__ import annotations

import operator
from ctypes import sizeof
from dataclasses import dataclass
from typing import Sequence, Union

from .arguments import c_text, int32, is_whole, items_of, real, shown
from .errors import ArgumentError
from .prototypes import LINEAGES, MAX_STAGES, SwinConfig, SwinError, check, library

#: A window for all stages (7), one per stage ((16, 16, 16, 8)), or (rows, columns) per stage (((7, 9), (7, 9))).
Window = Union[int, Sequence[Union[int, Sequence[int]]]]

#: (height, width) in pixels, or a number for both.
Size = Union[int, Sequence[int]]


@dataclass(frozen=True)
class Config:
    """A configuration; `dataclasses.replace` makes variants.

    >>> small = Config(embed_dim=32, depths=(2, 2), heads=(1, 2), window=7)
    >>> small.window
    ((7, 7), (7, 7))
    >>> preset("swin_tiny_patch4_window7_224").depths
    (2, 2, 6, 2)
    """

    embed_dim: int                              #: channels of level 0; level s has embed_dim << s
    depths: tuple[int, ...]                     #: blocks per stage
    heads: tuple[int, ...]                      #: attention heads per stage
    window: Window = 7                          #: in tokens; kept as (rows, columns) per stage
    version: int = 1                            #: 1 or 2: Swin Transformer V1 or V2
    lineage: str = "detection"                  #: whose arithmetic, see LINEAGES
    patch_size: int = 4
    mlp_ratio: float = 4.0
    pretrained_window: Window = 0               #: V2: window of pre-training; 0: the stage's own
    qkv_bias: bool = True
    patch_norm: bool = True
    out_norm: tuple[int, ...] = ()              #: levels that pass a LayerNorm before they are handed out
    absolute_position: tuple[int, int] = (0, 0)  #: grid of the absolute position embedding; (0, 0): none
    image_size: Size = (0, 0)                   #: configured size, where the lineage asks; (0, 0): unknown
    block_norm_period: int = 0                  #: V2 huge and giant: every n-th block of a stage ends in a norm
    block_norm_last: tuple[int, ...] = ()       #: stages whose last block ends in such a norm

    def __post_init__(self) -> None:
        for name in ("depths", "heads", "out_norm", "block_norm_last"):
            listed = items_of(getattr(self, name))
            if listed is None:
                raise ArgumentError(f"{name} is {shown(getattr(self, name))}, a list of numbers expected")
            object.__setattr__(self, name, tuple(int32(name, n) for n in listed))
        for name in ("out_norm", "block_norm_last"):
            levels = getattr(self, name)
            if not all(0 <= level < MAX_STAGES for level in levels):
                raise ArgumentError(f"{name} is {shown(levels)}, numbers from 0 to {MAX_STAGES - 1} expected")
        stages = len(self.depths)
        if not 1 <= stages <= MAX_STAGES or len(self.heads) != stages:
            raise ArgumentError(f"a configuration has {stages} depths and {len(self.heads)} heads, the same number "
                                f"from 1 to {MAX_STAGES} expected")
        index_of("lineage", LINEAGES, self.lineage)
        for name in ("embed_dim", "version", "patch_size", "block_norm_period"):
            object.__setattr__(self, name, int32(name, getattr(self, name)))
        for name in ("qkv_bias", "patch_norm"):
            object.__setattr__(self, name, bool(getattr(self, name)))
        object.__setattr__(self, "mlp_ratio", real("mlp_ratio", self.mlp_ratio))
        for name in ("absolute_position", "image_size"):
            object.__setattr__(self, name, pair(name, getattr(self, name)))
        for name in ("window", "pretrained_window"):
            object.__setattr__(self, name, windows(name, getattr(self, name), stages))

    def _as_struct(self) -> SwinConfig:
        made = SwinConfig(struct_size=sizeof(SwinConfig), stages=len(self.depths),
                          lineage=LINEAGES.index(self.lineage))
        for name in ("version", "patch_size", "embed_dim", "mlp_ratio", "qkv_bias", "patch_norm", "block_norm_period"):
            setattr(made, name, getattr(self, name))
        for name in ("out_norm", "block_norm_last"):
            setattr(made, name, sum(1 << s for s in set(getattr(self, name))))
        for name in ("depths", "heads", "absolute_position", "image_size"):
            getattr(made, name)[:len(getattr(self, name))] = getattr(self, name)
        for name in ("window", "pretrained_window"):
            for s, pair in enumerate(getattr(self, name)):
                getattr(made, name)[s][:] = pair
        return made


def _from_struct(made: SwinConfig) -> Config:
    stages = made.stages
    return Config(
        embed_dim=made.embed_dim, depths=tuple(made.depths[:stages]), heads=tuple(made.heads[:stages]),
        window=tuple(tuple(made.window[s]) for s in range(stages)), version=made.version,
        lineage=LINEAGES[made.lineage], patch_size=made.patch_size, mlp_ratio=made.mlp_ratio,
        pretrained_window=tuple(tuple(made.pretrained_window[s]) for s in range(stages)), qkv_bias=bool(made.qkv_bias),
        patch_norm=bool(made.patch_norm), out_norm=_bits(made.out_norm),
        absolute_position=tuple(made.absolute_position), image_size=tuple(made.image_size),
        block_norm_period=made.block_norm_period,
        block_norm_last=_bits(made.block_norm_last))


def preset(name: str) -> Config:
    """The published configuration of that checkpoint name; see `preset_names`."""
    made, error = SwinConfig(), SwinError()
    check(library().swin_config_preset(made, sizeof(made), c_text("the preset's name", name), error), error)
    return _from_struct(made)


def preset_names() -> list[str]:
    """All names that `preset` knows.

    >>> "swin_large_patch4_window12_384" in preset_names()
    True
    """
    names: list[str] = []
    get = library().swin_config_preset_name
    while (name := get(len(names))) is not None:
        names.append(name.decode())
    return names


def windows(name: str, value: Window, stages: int) -> tuple[tuple[int, int], ...]:
    """A window as (rows, columns) of each stage."""
    try:
        per_stage = [value] * stages if is_whole(value) else items_of(value) or ()
        if len(per_stage) != stages:
            raise ArgumentError
        return tuple(pair(name, one) for one in per_stage)
    except (ArgumentError, TypeError):
        raise ArgumentError(f"{name} is {shown(value)}, a number, or for each of {stages} stages a number or a pair "
                            "expected") from None


def pair(name: str, value: Size) -> tuple[int, int]:
    """Rows and columns; a number stands for both.

    >>> pair("image_size", 224), pair("image_size", (192, 256))
    ((224, 224), (192, 256))
    """
    try:
        sides = [value, value] if is_whole(value) else items_of(value) or ()
        rows, columns = map(operator.index, sides)
        if -1 << 31 <= min(rows, columns) and max(rows, columns) < 1 << 31:
            return rows, columns
    except (TypeError, ValueError):
        pass
    raise ArgumentError(f"{name} is {shown(value)}, a number or a pair of rows and columns expected") from None


def index_of(what: str, names: Sequence[str], value: str) -> int:
    """The number behind a word."""
    if value not in names:
        raise ArgumentError(f"{what} is {shown(value)}, one of {', '.join(names)} expected")
    return names.index(value)


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(s for s in range(MAX_STAGES) if mask >> s & 1)
