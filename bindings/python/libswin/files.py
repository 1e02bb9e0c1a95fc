# SPDX-License-Identifier: MIT
"""Files that appear under their names when they are whole."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from typing import IO, Iterator


@contextmanager
def whole(path: str) -> Iterator[IO[bytes]]:
    """A file to write, which gets its name at the end; on failure nothing is left, and an older file stays as it was.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with whole(os.path.join(directory, "a")) as out:
    ...         _ = out.write(b"text")
    ...         os.path.exists(os.path.join(directory, "a"))
    ...     os.listdir(directory)
    False
    ['a']
    """
    unfinished = f"{path}.{secrets.token_hex(4)}.part"
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise _of(path, error) from None
    try:
        with open(descriptor, "wb") as out:
            yield out
        try:
            os.replace(unfinished, path)
        except OSError as error:
            raise _of(path, error) from None
    except BaseException:
        os.unlink(unfinished)
        raise


def _of(path: str, error: OSError) -> OSError:
    """The same, of what the caller knows by name: the file, or the directory that it has none of."""
    directory = os.path.dirname(path) or os.curdir
    return OSError(error.errno, error.strerror, path if os.path.isdir(directory) else directory)
