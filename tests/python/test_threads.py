# SPDX-License-Identifier: MIT
"""Threads, processes, signals and long runs."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, sizeof

import numpy as np
import pytest

import libswin
from libswin import prototypes
from libswin.session import Session

SMALL = libswin.Config(embed_dim=32, depths=(2, 2, 1), heads=(1, 2, 4), window=4)
PATIENCE = 120  # seconds until a hang is called one


@pytest.fixture(scope="module")
def model():
    return libswin.random(SMALL, seed=3)


def image(height=61, width=90, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


@pytest.fixture
def before_run(monkeypatch):
    """Has a function called with handle and count before every run of a session."""
    def install(before):
        real = prototypes.library().swin_session_run

        class Library:
            def __getattr__(self, name):
                return getattr(prototypes.library(), name)

            @staticmethod
            def swin_session_run(handle, images, count, *rest):
                before(handle, count)
                return real(handle, images, count, *rest)

        monkeypatch.setattr("libswin.model.library", Library)
    return install


def same(one, other) -> bool:
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other))


# ----------------------------------------------------------------------------------------------------------------------
# Threads

def test_two_calls_are_inside_the_library_at_the_same_time(model):
    """A session that is entered while another thread is inside answers STATE. That can only happen if the interpreter
    lock is free during a run: no clock is needed to see that calls overlap."""
    library = prototypes.library()
    session = Session(model._open(), prototypes.PRECISIONS.index("f32"), 1)
    pixels = image(640, 640)
    struct = prototypes.initialised("swin_image")
    struct.data, struct.height, struct.width = pixels.ctypes.data, 640, 640
    overlapped = threading.Event()

    def run() -> int:
        out = np.empty((32, 160, 160), np.float32)
        maps = prototypes.SwinMaps(struct_size=sizeof(prototypes.SwinMaps))
        maps.data[0], maps.capacity[0] = out.ctypes.data, out.size
        error = prototypes.SwinError()
        return library.swin_session_run(session.handle, byref(struct), 1, byref(maps), byref(error))

    def worker() -> set[int]:
        seen = set()
        for _ in range(500):
            if overlapped.is_set():
                break
            status = run()
            seen.add(status)
            if status == libswin.StateError.status:
                overlapped.set()
        return seen

    with ThreadPoolExecutor(2) as pool:
        seen = set().union(*pool.map(lambda _: worker(), range(2)))
    assert seen == {0, libswin.StateError.status}


def test_threads_that_run_at_once_have_sessions_of_their_own(before_run):
    """Two threads meet inside: the second call must not be given the session of the first."""
    meeting, sessions = threading.Barrier(2, timeout=PATIENCE), []

    def meet(handle, count):
        sessions.append(handle.value)
        meeting.wait()

    before_run(meet)
    fresh = libswin.random(SMALL)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda i: fresh(image()), range(2)))
        list(pool.map(lambda i: fresh(image()), range(2)))
    assert len(set(sessions[:2])) == 2 and set(sessions[2:]) == set(sessions[:2])


def test_many_threads_and_sizes_give_what_one_gives(model):
    images = [image(20 + 7 * i % 50, 30 + 11 * i % 60, i) for i in range(24)]
    wanted = [model(one, threads=1) for one in images]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(3):
            assert all(map(same, pool.map(lambda one: model(one, threads=2), images), wanted))


def test_threads_that_come_and_go_leave_one_session(model):
    fresh = libswin.random(SMALL)
    for _ in range(20):
        thread = threading.Thread(target=fresh, args=(image(),))
        thread.start()
        thread.join()
    (idle,) = fresh._sessions._idle.values()
    assert len(idle) == 1


def test_closing_under_a_running_call(model, before_run):
    """The call goes on with the weights; they are released when it returns."""
    wanted = model(image())
    inside, closed = threading.Event(), threading.Event()

    def wait(handle, count):
        inside.set()
        assert closed.wait(PATIENCE)

    before_run(wait)
    fresh = libswin.random(SMALL, seed=3)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(fresh, np.stack([image()] * 4))
        assert inside.wait(PATIENCE)
        fresh.close()
        with pytest.raises(libswin.StateError):
            fresh(image())
        closed.set()
        assert same([m[3:] for m in call.result(PATIENCE)], wanted)


# ----------------------------------------------------------------------------------------------------------------------
# Processes

def forked(work) -> int:
    """The exit status of `work` in a child that fork() made; -SIGALRM where it hangs."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            signal.alarm(PATIENCE)
            code = work()
        except BaseException:
            import traceback
            traceback.print_exc()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_fork_after_use(model):
    """The parent's sessions have threads that the child has not: it must make its own, and leave those alone."""
    wanted = model(image(), threads=2)
    parents = [session for idle in model._sessions._idle.values() for session in idle]
    assert parents

    def child() -> int:
        right = same(model(image(), threads=2), wanted)
        own = [session for idle in model._sessions._idle.values() for session in idle]
        model.close()
        return 0 if right and own and not set(own) & set(parents) else 1

    assert forked(child) == 0
    assert same(model(image(), threads=2), wanted)


def test_a_child_does_not_take_down_its_parents_sessions():
    fresh, taken_down = libswin.random(SMALL), []
    fresh(image())
    for idle in fresh._sessions._idle.values():
        for session in idle:
            session._destroy = taken_down.append
    del idle, session

    def child() -> int:
        fresh(image())
        fresh.close()
        return len(taken_down)

    assert forked(child) == 0
    fresh.close()
    assert len(taken_down) == 1
    prototypes.library().swin_session_destroy(taken_down[0])


def test_fork_while_other_threads_run(model):
    wanted = model(image())
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            model(image(200, 200))

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            assert forked(lambda: 0 if same(model(image()), wanted) else 1) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_fork_of_a_fork(model):
    wanted = model(image())
    assert forked(lambda: forked(lambda: 0 if same(model(image()), wanted) else 1)) == 0


def test_fork_before_the_library_is_loaded():
    program = ("import os, libswin, numpy, sys\n"
               "def call():\n"
               "    return libswin.random(libswin.Config(32, (1,), (1,)))(numpy.zeros((9, 9, 3), 'u1'))[0].sum()\n"
               "child = os.fork()\n"
               "value = call()\n"
               "if child == 0: os._exit(int(numpy.isnan(value)))\n"
               "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n")
    assert subprocess.run([sys.executable, "-c", program], timeout=PATIENCE).returncode == 0


_shared = None  # inherited by workers that are forked


def _work_inherited(seed):
    return [m.sum(dtype=np.float64) for m in _shared(image(seed=seed))]


def _work_sent(task):
    sent, seed = task
    return [m.sum(dtype=np.float64) for m in sent(image(seed=seed))]


def test_multiprocessing_with_fork(model):
    global _shared
    _shared = model
    wanted = [_work_inherited(seed) for seed in range(8)]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(_work_inherited, range(8)).get(PATIENCE) == wanted


def test_multiprocessing_with_spawn(model):
    wanted = [_work_sent((model, seed)) for seed in range(4)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map_async(_work_sent, [(model, seed) for seed in range(4)]).get(PATIENCE) == wanted


# ----------------------------------------------------------------------------------------------------------------------
# Signals

def test_ctrl_c_between_the_images_of_a_batch(model, monkeypatch, before_run):
    """A signal that arrives during the second image ends a batch of 1000 long before the last one."""
    calls = []

    def interrupt(handle, count):
        calls.append(count)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)

    before_run(interrupt)
    monkeypatch.setattr("libswin.model._SLICE", 0.0)  # an image at a time, whatever the machine
    with pytest.raises(KeyboardInterrupt):
        model(np.zeros((1000, 8, 8, 3), np.uint8))
    assert calls == [1, 1]
    monkeypatch.undo()
    assert model(image())


def test_slices_of_a_batch_cover_it_once(model, before_run):
    calls = []
    batch = np.stack([image(16, 16, i) for i in range(100)])
    wanted = [np.concatenate([model(one)[level] for one in batch]) for level in range(3)]
    before_run(lambda handle, count: calls.append(count))
    assert same(model(batch), wanted)
    assert calls[0] == 1 and sum(calls) == 100 and len(calls) < 100


# ----------------------------------------------------------------------------------------------------------------------
# Memory

def resident() -> int:
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc/self/statm")
def test_memory_of_a_thousand_calls_is_flat(model):
    """After a first hundred, which fill the caches of everybody, 1000 calls of changing sizes may not add 1 KB each."""
    shapes = [(8 + 9 * (i % 7), 8 + 5 * (i % 11)) for i in range(77)]

    def calls(count):
        for i in range(count):
            model(np.zeros((*shapes[i % 77], 3), np.uint8), threads=1)
            if i % 10 == 0:
                with pytest.raises(libswin.Error):
                    model(np.zeros((8, 8, 3), np.uint8), std=[0, 1, 1])

    calls(100)
    before = resident()
    calls(1000)
    assert resident() - before < 1000 * 1024


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc/self/statm")
def test_models_give_their_memory_back():
    """200 models of 0.5 MB each: were they kept, it would show."""
    def make(count):
        for i in range(count):
            libswin.random(SMALL, i)(np.zeros((16, 16, 3), np.uint8), threads=2)

    make(20)
    before = resident()
    make(200)
    assert resident() - before < 20 << 20
    assert threading.active_count() < 50 and len(os.listdir("/proc/self/task")) < 50


def test_the_error_struct_is_the_callers_own(model):
    """No message of one thread shows in another."""
    def fail(seed):
        for _ in range(50):
            try:
                model(np.zeros((8, 8, 3), np.uint8), std=[1, 1, -seed])
            except libswin.ArgumentError as error:
                assert str(error) == f"image 0: std[2] is {-seed:g}, expected a positive number"
            else:
                raise AssertionError("no error")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fail, range(1, 9)))
