# SPDX-License-Identifier: MIT
"""The self-test, as Python has it."""

from __future__ import annotations

import libswin


def test_every_kernel_passes():
    found = libswin.selftest()
    assert len(found) >= 19
    assert len({kernel.kernel for kernel in found if kernel.isa != "amx"}) == 19
    for kernel in found:
        assert kernel.passed and 0 <= kernel.error <= 1, kernel
        assert kernel.isa in ("plain", "avx2", "avx512", "avx512_bf16", "amx")
