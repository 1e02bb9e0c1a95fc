# SPDX-License-Identifier: MIT
"""What a call from Python costs beyond the C call that it makes, at 224 x 224: the two are interleaved and their
medians compared. Prints microseconds; decides nothing.

    meson test -C build --benchmark python-overhead -v
"""

from __future__ import annotations

import statistics
import time
from ctypes import byref, sizeof

import numpy as np

import libswin
from libswin import prototypes
from libswin.session import Session


def main() -> None:
    # One block: what is measured is not drowned in what is computed.
    model = libswin.random(libswin.Config(embed_dim=32, depths=(1, 1, 1, 1), heads=(1, 2, 4, 8)))
    pixels = np.zeros((224, 224, 3), np.uint8)
    out = [np.empty((1, s.channels, s.height, s.width), np.float32) for s in model.output_shapes(224, 224)]

    session = Session(model._open(), 0, 1)
    image = prototypes.initialised("swin_image")
    image.data, image.height, image.width = pixels.ctypes.data, 224, 224
    maps = prototypes.SwinMaps(struct_size=sizeof(prototypes.SwinMaps))
    for level, array in enumerate(out):
        maps.data[level], maps.capacity[level] = array.ctypes.data, array.size
    error, run = prototypes.SwinError(), prototypes.library().swin_session_run
    arguments = (session.handle, byref(image), 1, byref(maps), byref(error))

    calls = {
        "C function": lambda: run(*arguments),
        "model(image, out=...)": lambda: model(pixels, threads=1, out=out),
        "model(image)": lambda: model(pixels, threads=1),
        "model([image])": lambda: model([pixels], threads=1),
    }
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(300):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    base = statistics.median(times["C function"])
    for name, seen in times.items():
        median = statistics.median(seen)
        print(f"{name:24} {median * 1e6:9.1f} us   {(median - base) * 1e6:+7.1f} us")


if __name__ == "__main__":
    main()
