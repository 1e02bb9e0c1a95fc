#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the tables of lib/kernels/gelu_avx512.c and amx_linear.c, and how good they are. Needs numpy.

h(t) = t Phi(-t), the part of gelu(x) = max(x, 0) - h(|x|) that bends, as 32 polynomials each. Interval k is where the
index, a polynomial of t itself, rounds to k. In the first, h has no constant term, so that small x keep their digits;
the last is zero. The polynomials are minimax in relative error, by least squares whose weights follow the error.

The tiles' table has Phi itself in 32 quadratics of x over [-4, 4), minimax in absolute error. Piece k of the table
begins at k / 4, or at k / 4 - 8 from k = 16 on: the index is the low bits of floor(4 x).
"""
import math
import textwrap

import numpy as np

INTERVALS = 32


def h(t):
    return np.array([v * 0.5 * math.erfc(v / math.sqrt(2)) for v in t])


def minimax(rows, target, rounds):
    """The largest error of rows @ c, and c, by least squares whose weights follow the error."""
    weights, best = np.ones(len(target)) / len(target), (np.inf, None)
    for _ in range(rounds):
        c, *_ = np.linalg.lstsq(rows * np.sqrt(weights)[:, None], target * np.sqrt(weights), rcond=None)
        error = abs(rows @ c - target)
        if error.max() < best[0]:
            best = error.max(), c
        weights *= error + 1e-18
        weights /= weights.sum()
    return best


def fit(low, high, variable, degree, first):
    """Coefficients of h on [low, high] in variable(t), without a constant term in the first interval."""
    count = 200
    t = (low + high) / 2 + (high - low) / 2 * np.cos((np.arange(count) + 0.5) / count * np.pi)
    y, v = h(t), variable(t)
    powers = np.stack([v**i for i in range(1 if first else 0, degree + 1)], 1)
    size = np.abs(powers).max(0)
    error, c = minimax(powers / size / y[:, None], np.ones(count), 60)
    c /= size
    return error, np.concatenate([[0], c]) if first else c


def print_columns(rows):
    for column in rows.T:
        values = ["0" if v == 0 else float(v).hex().replace("0000000p", "p") + "f" for v in np.float32(column)]
        text = "{" + ", ".join(values) + "},"
        print(textwrap.fill(text, 120, initial_indent="    ", subsequent_indent="     "))


def table(name, degree, index, inverse, variable):
    rows, worst = [], 0
    for k in range(INTERVALS - 1):
        low, high = inverse(max(k - 0.5, 0)) if k else 1e-6, inverse(k + 0.5)
        error, c = fit(low, high, lambda t: variable(t, k), degree, k == 0)
        worst = max(worst, error)
        rows.append(c)
    rows.append(np.zeros(degree + 1))
    print(f"/* {name}: relative error {worst:.1e} up to t = {inverse(INTERVALS - 1.5):.2f} */")
    print_columns(-np.array(rows))


A, B, STEP = 1.9, 0.53, 0.2
table("coarse", 2, lambda t: A * t + B * t * t, lambda s: (math.sqrt(A * A + 4 * B * s) - A) / (2 * B), lambda t, k: t)
table("fine", 4, lambda t: t / STEP, lambda s: s * STEP, lambda t, k: t / STEP - k)


def phi(x):
    return np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x])


def piece(low):
    """Coefficients of x^2, x and 1, and the absolute error, of Phi from low to low + 1/4."""
    x = low + 0.125 + 0.125 * np.cos((np.arange(400) + 0.5) / 400 * np.pi)
    s = x - low
    error, (c, b, a) = minimax(np.stack([s * 0 + 1, s, s * s], 1), phi(x), 200)
    return (a, b - 2 * a * low, c - b * low + a * low * low), error


def first_piece():
    """From -4: exactly zero at the bound -4 (1 - 2^-24) in float32 arithmetic, so that what lies beyond becomes zero:
    with these, a x + b is 2^-16 there, and no step is rounded."""
    x, bound = np.linspace(-4, -3.75, 400), 4 * (1 - 2.0**-24)
    a, slope = -2.0**-13, 2.0**-16
    b, c = slope + a * bound, slope * bound
    return (a, b, c), abs((a * x + b) * x + c - phi(x)).max()


pieces = [piece(k / 4 if k < 16 else k / 4 - 8) if k != 16 else first_piece() for k in range(INTERVALS)]
print(f"/* tiles: absolute error {max(error for _, error in pieces):.1e} */")
print_columns(np.array([c for c, _ in pieces]))
