# SPDX-License-Identifier: MIT
"""What pyproject.toml cannot say: the version stands in version.h, and a wheel carries libswin.so where there is one.

The library is taken from LIBSWIN_PATH (a file or a directory), else from a meson build directory in the repository
(build*/lib). With neither, the wheel is plain Python and finds the system's library.
"""

import glob
import os
import re
import shutil
import sys
import sysconfig

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def header_number(name: str) -> str:
    with open(os.path.join(ROOT, "include", "swin", "version.h"), encoding="utf-8") as header:
        return re.search(rf"^#define SWIN_{name} (\d+)$", header.read(), re.M).group(1)


def find_library() -> "str | None":
    soname = f"libswin.so.{header_number('ABI_VERSION')}"
    named = os.environ.get("LIBSWIN_PATH")
    if named:
        candidates = [
    os.path.join(
        named, soname), os.path.join(
            named, "libswin.so")] if os.path.isdir(named) else [named]
    else:
        candidates = sorted(glob.glob(os.path.join(ROOT, "build*", "lib", soname)), key=os.path.getmtime, reverse=True)
    found = next(filter(os.path.isfile, candidates), None)
    if named and found is None:
        sys.exit(f"LIBSWIN_PATH is {named}, where there is no library")
    return found


class BuildWithLibrary(build_py):
    def run(self) -> None:
        super().run()
        library = find_library()
        if library is not None and not self.editable_mode:
            target = os.path.join(self.build_lib, "libswin", f"libswin.so.{header_number('ABI_VERSION')}")
            self.announce(f"carrying {library}", level=2)
            shutil.copyfile(os.path.realpath(library), target)


class WithLibrary(Distribution):
    """Files of one machine go where Python keeps such files."""

    def has_ext_modules(self) -> bool:
        return find_library() is not None


class AnyPython(bdist_wheel):
    """Only the library is made for a machine; ctypes serves every Python 3."""

    def get_tag(self) -> "tuple[str, str, str]":
        if self.root_is_pure:
            return super().get_tag()
        return "py3", "none", re.sub(r"[-.]", "_", sysconfig.get_platform())


setup(version=".".join(map(header_number, ("VERSION_MAJOR", "VERSION_MINOR", "VERSION_PATCH"))),
      distclass=WithLibrary, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": AnyPython})
