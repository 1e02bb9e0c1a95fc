# SPDX-License-Identifier: MIT
"""Attention weights on request."""

from __future__ import annotations

from ctypes import c_void_p, sizeof
from typing import Any, NamedTuple, Optional, Sequence, Union

import numpy as np

from .arguments import int32, is_whole, items_of, shown
from .errors import ArgumentError
from .prototypes import (HEAD_EACH, HEAD_MEAN, WINDOW_EACH, SwinAttention, SwinAttentionInfo, SwinError, SwinImage,
                         check, initialised, library)

#: A head by number, "mean" over all, or "each".
HeadChoice = Union[int, str]
#: A window by number, or "each".
WindowChoice = Union[int, str]


class Attention(NamedTuple):
    """The weights of a block, and where they belong. Pairs are (rows, columns)."""

    weights: np.ndarray                 #: float32, see `Model.attention`
    tokens: np.ndarray                  #: int32 [T] or [windows, T]: the cell in each place, -1: padding
    stride: int                         #: pixels per cell of the stage's map
    heads: int                          #: of the stage
    map: tuple[int, int]                #: the stage's map, in cells
    window: tuple[int, int]             #: of this image: T is the product
    shift: tuple[int, int]              #: of this block; (0, 0): not shifted
    windows: tuple[int, int]            #: how many
    cell: Optional[tuple[int, int]]     #: where the query stands on the map; None without a query
    query_window: Optional[int]         #: the number of its window
    query_slot: Optional[int]           #: its place in that window


def attend(model: Any, session: c_void_p, image: SwinImage, stage: int, block: int, query: Optional[Sequence[int]],
           window: Optional[WindowChoice], head: HeadChoice) -> Attention:
    """What a session answers; see `Model.attention`."""
    if (query is None) == (window is None):
        raise ArgumentError("attention is asked for with both query and window, one of them expected"
                            if query is not None else
                            "attention is asked for without query or window, one of them expected")
    request = initialised("swin_attention_request")
    request.stage, request.block = int32("stage", stage), int32("block", block)
    request.head = _choice("head", head, {"mean": HEAD_MEAN, "each": HEAD_EACH})
    if query is not None:
        pixel = items_of(query)
        if pixel is None or len(pixel) != 2 or not all(map(is_whole, pixel)):
            raise ArgumentError(f"query is {shown(query)}, the row and column of a pixel expected")
        request.query[:] = [int32("query", at) for at in pixel]
    else:
        request.view, request.window = 1, _choice("window", window, {"each": WINDOW_EACH})

    info, error = SwinAttentionInfo(), SwinError()
    check(library().swin_model_attention_info(model, image.canvas_height, image.canvas_width, request, info,
                                              sizeof(info), error), error)
    slots = info.window[0] * info.window[1]
    matrix = tuple(info.map) if query is not None else (slots, slots)
    several = (info.windows[0] * info.windows[1],) if window == "each" else ()
    weights = np.empty(several + ((info.heads,) if head == "each" else ()) + matrix, np.float32)
    tokens = np.empty(several + (slots,), np.int32)
    room = SwinAttention(sizeof(SwinAttention), weights.ctypes.data, weights.size, tokens.ctypes.data, tokens.size)
    check(library().swin_session_attention(session, image, request, room, error), error)
    pairs = {name: tuple(getattr(info, name)) for name in ("map", "window", "shift", "windows")}
    where: dict[str, Any] = dict(cell=None, query_window=None, query_slot=None)
    if query is not None:
        where = dict(cell=tuple(info.cell), query_window=info.query_window, query_slot=info.query_slot)
    return Attention(weights, tokens, info.stride, info.heads, **pairs, **where)


def _choice(what: str, value: Any, words: dict[str, int]) -> int:
    """A number, or what a word stands for."""
    if isinstance(value, str):
        if value not in words:
            raise ArgumentError(f"{what} is {value!r}, a number or one of {', '.join(words)} expected")
        return words[value]
    number = int32(what, value)
    if number < 0:
        raise ArgumentError(f"{what} is {number}, a number from 0 on or one of {', '.join(words)} expected")
    return number
