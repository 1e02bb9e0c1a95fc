# SPDX-License-Identifier: MIT
"""Bytes of a file at known places: every read is checked against the size first."""

from __future__ import annotations

import io
import os
from typing import BinaryIO

from ..errors import ConvertError


class Source:
    """`size` bytes of an open file, starting at `base`."""

    def __init__(self, file: BinaryIO, base: int = 0, size: int | None = None) -> None:
        self._file = file
        self._base = base
        self.size = os.fstat(file.fileno()).st_size - base if size is None else size

    def read_at(self, offset: int, count: int) -> bytes:
        if offset < 0 or count < 0 or offset > self.size or count > self.size - offset:
            raise ConvertError(f"truncated: {count} bytes wanted at offset {self._base + offset}, "
                               f"the data ends at {self._base + self.size}")
        self._file.seek(self._base + offset)
        data = self._file.read(count)
        if len(data) != count:
            raise ConvertError(f"the file became shorter while it was read, at offset {self._base + offset}")
        return data

    def part(self, offset: int, count: int) -> Source:
        """A range of this source as a source of its own."""
        if offset < 0 or count < 0 or offset > self.size or count > self.size - offset:
            raise ConvertError(f"truncated: {count} bytes wanted at offset {self._base + offset}, "
                               f"the data ends at {self._base + self.size}")
        return Source(self._file, self._base + offset, count)

    def file(self) -> BinaryIO:
        """The same bytes as a seekable file, for readers of the standard library."""
        return io.BufferedReader(_SourceFile(self))


class _SourceFile(io.RawIOBase):
    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._source.size}[whence]
        if start + offset < 0:
            raise ConvertError(f"a position before the start of the data is asked for ({start + offset})")
        self._position = start + offset
        return self._position

    def readinto(self, buffer) -> int:  # type: ignore[override]
        count = max(0, min(len(buffer), self._source.size - self._position))
        buffer[:count] = self._source.read_at(self._position, count) if count else b""
        self._position += count
        return count


class Cursor:
    """Reads a source from front to back, in small steps."""

    _CHUNK = 1 << 16

    def __init__(self, source: Source, position: int = 0) -> None:
        self.source = source
        self.position = position
        self._buffer = b""
        self._start = position

    def take(self, count: int) -> bytes:
        first = self.position - self._start
        if first + count > len(self._buffer):
            self._buffer = self.source.read_at(
                self.position, max(count, min(self._CHUNK, self.source.size - self.position)))
            self._start = self.position
            first = 0
        self.position += count
        return self._buffer[first:first + count]

    def skip(self, count: int) -> int:
        """Steps over `count` bytes and returns where they begin."""
        first = self.position
        if count > self.source.size - first:
            raise ConvertError(
                f"truncated: {count} bytes wanted at offset {first}, the data ends at {self.source.size}")
        self.position = first + count
        self._start, self._buffer = self.position, b""
        return first

    def line(self) -> bytes:
        """Up to the next newline, without it."""
        first = self.position - self._start
        end = self._buffer.find(b"\n", first)
        if end < 0:
            available = min(self._CHUNK, self.source.size - self.position)
            self._buffer = self.source.read_at(self.position, available)
            self._start, first = self.position, 0
            end = self._buffer.find(b"\n")
            if end < 0:
                raise ConvertError(f"no end of line within {available} bytes at offset {self.position}")
        self.position = self._start + end + 1
        return self._buffer[first:end]
