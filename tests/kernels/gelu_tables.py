#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the tables of lib/kernels/gelu_avx512.c, and how good they are. Needs numpy.

h(t) = t Phi(-t), the part of gelu(x) = max(x, 0) - h(|x|) that bends, as 32 polynomials each. Interval k is where the
index, a polynomial of t itself, rounds to k. In the first, h has no constant term, so that small x keep their digits;
the last is zero. The polynomials are minimax in relative error, by least squares whose weights follow the error.
"""
import math
import textwrap

import numpy as np

INTERVALS = 32


def h(t):
    return np.array([v * 0.5 * math.erfc(v / math.sqrt(2)) for v in t])


def fit(low, high, variable, degree, first):
    """Coefficients of h on [low, high] in variable(t), without a constant term in the first interval."""
    count = 200
    t = (low + high) / 2 + (high - low) / 2 * np.cos((np.arange(count) + 0.5) / count * np.pi)
    y, v = h(t), variable(t)
    powers = np.stack([v**i for i in range(1 if first else 0, degree + 1)], 1)
    size = np.abs(powers).max(0)
    weights, best = np.ones(count) / count, (np.inf, None)
    for _ in range(60):
        c, *_ = np.linalg.lstsq(powers / size / y[:, None] * np.sqrt(weights)[:, None], np.sqrt(weights), rcond=None)
        error = abs(powers / size @ c / y - 1)
        if error.max() < best[0]:
            best = error.max(), c / size
        weights *= error + 1e-18
        weights /= weights.sum()
    return best[0], np.concatenate([[0], best[1]]) if first else best[1]


def table(name, degree, index, inverse, variable):
    rows, worst = [], 0
    for k in range(INTERVALS - 1):
        low, high = inverse(max(k - 0.5, 0)) if k else 1e-6, inverse(k + 0.5)
        error, c = fit(low, high, lambda t: variable(t, k), degree, k == 0)
        worst = max(worst, error)
        rows.append(c)
    rows.append(np.zeros(degree + 1))
    print(f"/* {name}: relative error {worst:.1e} up to t = {inverse(INTERVALS - 1.5):.2f} */")
    for column in -np.array(rows).T:
        values = ["0" if v == 0 else float(v).hex().replace("0000000p", "p") + "f" for v in np.float32(column)]
        text = "{" + ", ".join(values) + "},"
        print(textwrap.fill(text, 120, initial_indent="    ", subsequent_indent="     "))


A, B, STEP = 1.9, 0.53, 0.2
table("coarse", 2, lambda t: A * t + B * t * t, lambda s: (math.sqrt(A * A + 4 * B * s) - A) / (2 * B), lambda t, k: t)
table("fine", 4, lambda t: t / STEP, lambda s: s * STEP, lambda t, k: t / STEP - k)
