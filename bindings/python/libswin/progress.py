# SPDX-License-Identifier: MIT
"""A line that tells how far many images are, with rate and time left; where there is no terminal, there is none."""

from __future__ import annotations

import os
import shutil
import sys
import time

_CELLS = 24


class Progress:
    """Of `total` images. The bar stands below the lines that are said, and goes away in the end."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._started = total, 0, time.monotonic()
        self._shown = total > 1 and sys.stderr.isatty()
        self._draw("")

    def say(self, line: str) -> None:
        """A line on stdout."""
        self.wipe()
        print(line, flush=True)

    def step(self, path: str) -> None:
        """One image more is done, well or not."""
        self._done += 1
        self._draw(os.path.basename(path))

    def wipe(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _draw(self, name: str) -> None:
        if self._shown:
            line = bar(self._done, self._total, time.monotonic() - self._started, name)
            print(f"\r{line[:shutil.get_terminal_size().columns - 1]}\x1b[K", end="", file=sys.stderr, flush=True)


def bar(done: int, total: int, seconds: float, name: str) -> str:
    """
    >>> bar(3, 12, 2.0, "a.png")
    '[######------------------] 3/12  1.5 images/s  0:06 left  a.png'
    >>> bar(1, 9000, 2.0, "b\\x1b.png")
    '[------------------------] 1/9000  0.5 images/s  4:59:58 left  b?.png'
    >>> bar(0, 2, 0.0, "")
    '[------------------------] 0/2'
    """
    full = _CELLS * done // total
    words = [f"[{'#' * full}{'-' * (_CELLS - full)}] {done}/{total}"]
    if done and seconds > 0:
        minutes, left = divmod(round((total - done) * seconds / done), 60)
        hours, minutes = divmod(minutes, 60)
        clock = f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"
        words += [f"{done / seconds:.3g} images/s", f"{clock} left"]
    if name:
        words.append("".join(c if c.isprintable() else "?" for c in name))
    return "  ".join(words)
