# SPDX-License-Identifier: MIT
"""Gives the converter spoilt checkpoints for a while. Only a conversion or a ConvertError of one line may come of one.

    pickles.py SECONDS [SEED]      from anywhere; prints the cases tried, exits 1 with the first that went wrong
    pickles.py --replay            gives it the corpus as it is

Cases are made of the files in corpus/pickles and python/checkpoints, and of opcodes and names put together at random:
those come past the first byte far more often than changed bytes do.
"""

from __future__ import annotations

import builtins
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bindings", "python"))

from libswin.convert import checkpoint  # noqa: E402
from libswin.errors import ConvertError  # noqa: E402

CORPUS = os.path.join(HERE, "corpus", "pickles")
CHECKPOINTS = os.path.join(HERE, "..", "python", "checkpoints")
SECONDS_PER_CASE = 10  # of the CPU
MEMORY = 4 << 30

NAMES = [b"collections\nOrderedDict\n", b"torch\nSize\n", b"torch\nFloatStorage\n", b"torch\nHalfStorage\n",
         b"torch._utils\n_rebuild_tensor_v2\n", b"torch._utils\n_rebuild_parameter\n", b"torch\nfloat16\n",
         b"torch.storage\n_load_from_bytes\n", b"torch._tensor\n_rebuild_from_type_v2\n", b"numpy\nndarray\n",
         b"numpy\ndtype\n", b"numpy.core.multiarray\n_reconstruct\n", b"numpy.core.multiarray\nscalar\n",
         b"_codecs\nencode\n", b"builtins\nset\n", b"builtins\ngetattr\n", b"copyreg\n_reconstructor\n",
         b"copyreg\n__newobj__\n", b"argparse\nNamespace\n", b"os\nsystem\n", b"some.module\nThing\n"]
WORDS = [b"cpu", b"model", b"state_dict", b"w", b"0", b"x" * 300, b"\xff\xfe", "\u00e4".encode(), b""]


def _short(text: bytes) -> bytes:
    return b"\x8c" + bytes([len(text) & 0xff]) + text[:255]


def token(rng: random.Random) -> bytes:
    kind = rng.randrange(10)
    if kind < 3:
        return rng.choice([b"(", b")", b"]", b"}", b"N", b"\x88", b"\x89", b"t", b"l", b"d", b"\x85", b"\x86", b"\x87"])
    if kind < 5:
        return rng.choice([b"R", b"b", b"a", b"e", b"s", b"u", b"o", b"0", b"1", b"2", b"\x81", b"\x92", b"\x93", b"Q",
                           b"\x8f", b"\x90", b"\x91", b"\x94", b"\x95" + bytes(8), b"\x80\x04"])
    if kind < 7:
        return b"c" + rng.choice(NAMES)
    if kind == 7:
        word = rng.choice(WORDS)
        return rng.choice([_short(word), b"X" + struct.pack("<I", len(word)) + word, b"V" + word + b"\n",
                           b"S'" + word + b"'\n", b"U" + bytes([len(word) & 0xff]) + word[:255],
                           b"C" + bytes([len(word) & 0xff]) + word[:255]])
    if kind == 8:
        value = rng.choice([0, 1, 2, 3, 255, -1, 1 << 31, 1 << 40, 1 << 62, -(1 << 63)])
        return rng.choice([b"K" + bytes([value & 0xff]), b"J" + struct.pack("<i", value & 0x7fffffff),
                           b"\x8a\x08" + struct.pack("<q", max(min(value, (1 << 63) - 1), -(1 << 63))),
                           b"I%d\n" % value, b"L%dL\n" % value, b"F1e400\n", b"G" + struct.pack(">d", float(value))])
    memo = bytes([rng.randrange(4)])
    return rng.choice([b"q", b"h"]) + memo


def invented(rng: random.Random) -> bytes:
    # With the mark of a protocol, since what begins in no known way is not looked into.
    return b"\x80\x04" + b"".join(token(rng) for _ in range(rng.randrange(1, 24))) + b"."


def spoilt(rng: random.Random, seeds: list[bytes]) -> bytes:
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        change = rng.randrange(7)
        if change == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif change == 1 and at < len(data):
            data[at] = rng.randrange(256)
        elif change == 2:
            del data[at:at + rng.randrange(1, 12)]
        elif change == 3:
            other = rng.choice(seeds)
            start = rng.randrange(len(other) + 1)
            data[at:at] = other[start:start + rng.randrange(1, 60)]
        elif change == 4:
            data[at:at + 4] = struct.pack("<I", rng.choice([0, 1, 0x7fffffff, 0x80000000, 0xffffffff]))
        elif change == 5:
            data[at:at + 8] = struct.pack("<Q", rng.choice([0, 1, 1 << 31, 1 << 62, 1 << 63, (1 << 64) - 1]))
        else:
            data[at:at] = token(rng)
    return bytes(data)


class Judge:
    """Tries cases in a directory of its own."""

    def __init__(self, directory: str) -> None:
        self.source, self.target = os.path.join(directory, "in"), os.path.join(directory, "out")
        self.directory, self.tried, self.converted = directory, 0, 0
        self.builtins = dict(vars(builtins))

    def attempt(self, data: bytes) -> str | None:
        """What went wrong, if anything did."""
        with open(self.source, "wb") as file:
            file.write(data)
        self.tried += 1
        signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_CASE)
        try:
            checkpoint(self.source, self.target)
            self.converted += 1
            os.unlink(self.target)
        except ConvertError as error:
            if "\n" in str(error):
                return f"a message of several lines: {error!r}"
        except KeyboardInterrupt:
            raise
        except BaseException:
            return traceback.format_exc()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if os.listdir(self.directory) != ["in"]:
            return f"something was left: {os.listdir(self.directory)}"
        if vars(builtins) != self.builtins:
            return "the builtins were changed"
        return None


class TooSlow(BaseException):
    pass


def _too_slow(number: int, frame: object) -> None:
    raise TooSlow(f"more than {SECONDS_PER_CASE} s")


def files_of(directory: str) -> list[str]:
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory))
            if not name.startswith((".", "__")) and not name.endswith(".py")]


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def report(judge: Judge, data: bytes, wrong: str) -> int:
    kept = os.path.join(tempfile.gettempdir(), f"pickle-crash-{os.getpid()}")
    with open(kept, "wb") as file:
        file.write(data)
    print(f"{wrong}\ncase {judge.tried}, kept in {kept}: {data[:200]!r}", file=sys.stderr)
    return 1


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    signal.signal(signal.SIGPROF, _too_slow)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    paths = files_of(CORPUS) + files_of(CHECKPOINTS)
    seeds = [read(path) for path in paths]
    with tempfile.TemporaryDirectory() as directory:
        judge = Judge(directory)
        if arguments == ["--replay"]:
            cases = iter(seeds)
        else:
            rng = random.Random(arguments[1] if len(arguments) > 1 else time.time_ns())
            end = time.monotonic() + float(arguments[0])
            small = [seed for seed in seeds if len(seed) < 20000]
            cases = iter(lambda: (invented(rng) if rng.random() < 0.4 else spoilt(rng, small))
                         if time.monotonic() < end else None, None)
        try:
            for data in cases:
                wrong = judge.attempt(data)
                if wrong is not None:
                    return report(judge, data, wrong)
        except KeyboardInterrupt:
            pass
        print(f"pickles: {judge.tried} cases, {judge.converted} of them converted")
        return 0 if judge.tried > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
