# SPDX-License-Identifier: MIT
"""What callers pass, as what C takes. ctypes cuts a number to the bits that a field has, and text at its first NUL:
here they are refused instead, by the name of the argument."""

from __future__ import annotations

import operator
from typing import Any, Callable, Optional

from .errors import ArgumentError


def int32(name: str, value: Any) -> int:
    """A whole number, numpy's too, for an int32_t.

    >>> int32("threads", 2)
    2
    """
    return _whole(name, value, -1 << 31, (1 << 31) - 1)


def uint64(name: str, value: Any) -> int:
    """Likewise for a uint64_t."""
    return _whole(name, value, 0, (1 << 64) - 1)


def _whole(name: str, value: Any, low: int, high: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} is {shown(value)}, a whole number expected") from None
    if not low <= number <= high:
        raise ArgumentError(f"{name} is {shown(number)}, expected {low} to {high}")
    return number


def real(name: str, value: Any) -> float:
    """A number, numpy's too, for a float or double."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name} is {shown(value)}, a number expected") from None


def c_text(name: str, value: Any, encode: Callable[[Any], bytes] = str.encode) -> bytes:
    """Text for a char *.

    >>> c_text("prefix", "backbone.")
    b'backbone.'
    """
    try:
        text = encode(value)
    except (TypeError, UnicodeError):
        raise ArgumentError(f"{name} is {shown(value)}, text expected") from None
    if b"\0" in text:
        raise ArgumentError(f"{name} {shown(value)} holds a NUL character")
    return text


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, numpy's too."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def items_of(value: Any) -> Optional[list[Any]]:
    """What a sequence holds; None where it is no sequence, or text."""
    try:
        return list(value) if hasattr(value, "__len__") and not isinstance(value, (str, bytes)) else None
    except TypeError:
        return None


def shown(value: Any) -> str:
    """`value` for a message: one line, within reason. Python refuses to write numbers of many digits."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:
        return "a number of very many digits"
    return text if len(text) <= 200 else text[:200] + "..."
