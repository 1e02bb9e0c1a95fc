# SPDX-License-Identifier: MIT
"""Sessions: who may be inside which, across threads and fork().

A call takes an idle session of its precision and thread count, or makes one, and gives it back afterwards. So a session
is never entered twice, threads that run at the same time have one each, and threads that come and go share those there
are.

A child process after fork() has the memory of its parent's sessions but not their threads. It makes its own, and leaves
those of the parent alone: they cannot be taken down without their threads. The model is only read, and serves both.
"""

from __future__ import annotations

import os
from ctypes import c_void_p
from typing import Any

from .prototypes import SwinError, check, initialised, library


class Session:
    """One swin_session, and the process it lives in."""

    __slots__ = ("handle", "pid", "_destroy", "_getpid")

    def __init__(self, model: Any, precision: int, threads: int) -> None:
        self.pid, self._destroy, self._getpid = os.getpid(), library().swin_session_destroy, os.getpid
        self.handle = c_void_p()
        params = initialised("swin_session_params")
        params.precision, params.threads = precision, threads
        error = SwinError()
        check(library().swin_session_create(model, params, self.handle, error), error)

    def __del__(self) -> None:
        if getattr(self, "handle", None) and self.pid == self._getpid():
            self._destroy(self.handle)
            self.handle = c_void_p()


class Sessions:
    """The idle sessions of one model."""

    def __init__(self) -> None:
        self._idle: dict[tuple[int, int], list[Session]] = {}
        self._pid = os.getpid()
        self._closed = False

    def take(self, model: Any, key: tuple[int, int]) -> Session:
        """A session that nobody else is in, for a precision and a number of threads. `list.pop` and `list.append` are
        atomic: there is no lock that fork() could leave taken."""
        if self._pid != os.getpid():
            self._idle, self._pid = {}, os.getpid()
        idle = self._idle.get(key)
        try:
            return idle.pop() if idle else Session(model, *key)
        except IndexError:  # another thread was first
            return Session(model, *key)

    def give(self, key: tuple[int, int], session: Session) -> None:
        """Back to the idle ones."""
        if not self._closed and session.pid == self._pid:
            self._idle.setdefault(key, []).append(session)

    def close(self) -> None:
        """Releases what is idle; what is in use goes when it comes back."""
        self._closed, self._idle = True, {}
