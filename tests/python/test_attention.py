# SPDX-License-Identifier: MIT
"""Attention weights by way of Python: where a query's weights lie, what shapes they have, and errors."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import libswin

SMALL = libswin.Config(embed_dim=32, depths=(2, 2, 1), heads=(1, 2, 4), window=4)


@pytest.fixture(scope="module")
def model():
    return libswin.random(SMALL, seed=3)


def image(height=61, width=90, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def test_a_query_is_its_row_of_the_window_laid_out(model):
    picture = image()
    for stage, block in [(0, 0), (0, 1), (1, 1), (2, 0)]:
        each = model.attention(picture, stage, block, window="each", head="each")
        assert each.weights.shape == (each.windows[0] * each.windows[1], each.heads, 16, 16)
        assert each.tokens.shape == each.weights.shape[:1] + (16,)
        assert each.cell is each.query_window is each.query_slot is None
        assert np.abs(each.weights.sum(axis=-1) - 1).max() < 1e-6
        assert sorted(each.tokens[each.tokens >= 0]) == list(range(each.map[0] * each.map[1]))
        for row, column in [(0, 0), (60, 89), (33, 17)]:
            seen = model.attention(picture, stage, block, query=(row, column), head="each")
            assert seen.cell == (row // seen.stride, column // seen.stride)
            assert each.tokens[seen.query_window, seen.query_slot] == seen.cell[0] * seen.map[1] + seen.cell[1]
            expected = np.zeros((seen.heads, seen.map[0] * seen.map[1]), np.float32)
            tokens = each.tokens[seen.query_window]
            kept = each.weights[seen.query_window, :, seen.query_slot][:, tokens >= 0]
            expected[:, tokens[tokens >= 0]] = kept
            assert np.array_equal(seen.weights.reshape(seen.heads, -1), expected)
            assert np.array_equal(seen.tokens, tokens)
            one = model.attention(picture, stage, block, query=(row, column), head=seen.heads - 1)
            assert np.array_equal(one.weights, seen.weights[-1])
            mean = model.attention(picture, stage, block, query=(row, column))
            assert mean.weights.shape == tuple(seen.map)
            assert np.abs(mean.weights - seen.weights.mean(axis=0)).max() < 1e-6


def test_shapes_follow_what_is_asked_for(model):
    picture = image()
    for window, head, shape in [(0, 0, (16, 16)), (0, "mean", (16, 16)), (1, "each", (2, 16, 16)),
                                ("each", 1, (6, 16, 16)), ("each", "mean", (6, 16, 16)),
                                ("each", "each", (6, 2, 16, 16))]:
        got = model.attention(picture, 1, 0, window=window, head=head)
        assert got.weights.shape == shape and got.weights.dtype == np.float32
        assert got.windows == (2, 3) and got.window == (4, 4) and got.shift == (0, 0) and got.map == (8, 12)
    assert model.attention(picture, 1, 1, window=0).shift == (2, 2)


def test_the_same_picture_in_other_forms(model):
    picture = image()
    expected = model.attention(picture, 1, 1, query=(30, 40)).weights
    assert np.array_equal(model.attention(picture[None], 1, 1, query=(30, 40)).weights, expected)
    swapped = np.ascontiguousarray(picture[..., ::-1])
    assert np.array_equal(model.attention(swapped, 1, 1, query=(30, 40), bgr=True).weights, expected)
    assert np.array_equal(model.attention(picture, 1, 1, query=(30, 40), threads=1).weights, expected)
    assert model.attention(picture, 1, 1, query=(63, 95), canvas=32).map == (8, 12)
    with pytest.raises(libswin.ArgumentError, match="row 63, column 40, outside of 61 x 90 pixels"):
        model.attention(picture, 1, 1, query=(63, 40))


def test_runs_are_as_before(model):
    picture = image()
    before = model(picture)
    model.attention(picture, 2, 0, query=(1, 1))
    assert all(np.array_equal(a, b) for a, b in zip(model(picture), before))


def test_threads_have_a_session_each(model):
    pictures = [image(seed=seed) for seed in range(4)]
    expected = [model.attention(picture, 1, 1, query=(9, 9)).weights for picture in pictures]
    got: list = [None] * 4

    def work(i):
        for _ in range(5):
            got[i] = model.attention(pictures[i], 1, 1, query=(9, 9)).weights

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(a, b) for a, b in zip(got, expected))


@pytest.mark.parametrize("arguments, said", [
    (dict(), "without query or window"),
    (dict(query=(1, 1), window=0), "with both query and window"),
    (dict(query=(1, 2, 3)), r"query is \(1, 2, 3\), the row and column of a pixel expected"),
    (dict(query=(-1, 0)), "row -1, column 0"),
    (dict(window="all"), "window is 'all', a number or one of each expected"),
    (dict(window=-1), "window is -1, a number from 0 on"),
    (dict(window=6), "^window is 6, expected -1 to 5"),
    (dict(window=0, head=2), "^head is 2"),
    (dict(window=0, head=-1), "head is -1, a number from 0 on"),
    (dict(window=0, head="max"), "head is 'max', a number or one of mean, each expected"),
    (dict(window=0, precision="f16"), "precision is 'f16'"),
    (dict(window=0, mean=[1, 2]), "mean has 2 values"),
    (dict(window=0, canvas=(10, 10)), "canvas is"),
])
def test_arguments(model, arguments, said):
    with pytest.raises(libswin.ArgumentError, match=said):
        model.attention(image(), 1, 0, **arguments)


def test_other_arguments(model):
    with pytest.raises(libswin.ArgumentError, match="^stage is 3, expected 0 to 2"):
        model.attention(image(), 3, 0, window=0)
    with pytest.raises(libswin.ArgumentError, match="^block is 1, expected 0 to 0"):
        model.attention(image(), 2, 1, window=0)
    with pytest.raises(libswin.ArgumentError, match="a batch of 2 images, one expected"):
        model.attention(np.stack([image(), image()]), 1, 0, window=0)
    with pytest.raises(libswin.StateError):
        closed = libswin.random(SMALL)
        closed.close()
        closed.attention(image(), 1, 0, window=0)
