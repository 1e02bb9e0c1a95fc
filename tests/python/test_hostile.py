# SPDX-License-Identifier: MIT
"""No code in a checkpoint is run, whatever it asks for, and a broken or malicious file gives an error of one line."""

from __future__ import annotations

import builtins
import io
import os
import pickle
import random
import resource
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from libswin.convert import checkpoint, pickles
from libswin.errors import ConvertError
from test_convert import CHECKPOINTS, fixture

TENSOR = pickle.dumps(np.ones(3, "f4"), 2)[2:-1]  # between PROTO and STOP


def refuse(tmp_path, data: bytes, match: str) -> None:
    (tmp_path / "in.pth").write_bytes(data)
    with pytest.raises(ConvertError, match=match) as caught:
        checkpoint(tmp_path / "in.pth", tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["in.pth"]


class Call:
    """Pickles as a call of a function."""

    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


class Flag:
    """Whether something has run: a file that commands would make."""

    def __init__(self, tmp_path_factory):
        self.path = tmp_path_factory.mktemp("flag") / "ran"
        self.command = f"touch {self.path}"


@pytest.fixture
def flag(tmp_path_factory):
    made = Flag(tmp_path_factory)
    os.system(made.command)
    assert made.path.exists()  # the command does what it should, were it run
    made.path.unlink()
    yield made
    assert not made.path.exists()


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
def test_os_system_is_refused_by_name(tmp_path, flag, protocol):
    data = pickle.dumps({"model": {"w": np.ones(3, "f4")}, "args": Call(os.system, flag.command)}, protocol)
    refuse(tmp_path, data, r"in.pth: the file asks for os.system, which could run code: refused, nothing was run$")


def test_the_same_file_does_run_where_it_is_trusted(tmp_path, tmp_path_factory):
    """Otherwise the tests here would prove nothing."""
    command = Flag(tmp_path_factory)
    pickle.loads(pickle.dumps({"args": Call(os.system, command.command)}))
    assert command.path.exists()


def test_inside_a_zip_archive_and_a_stream(tmp_path, flag):
    data = pickle.dumps({"args": Call(os.system, flag.command)}, 2)
    with zipfile.ZipFile(tmp_path / "in.pth", "w") as archive:
        archive.writestr("x/data.pkl", data)
    refuse(tmp_path, (tmp_path / "in.pth").read_bytes(), "asks for os.system")
    stream = b"".join(pickle.dumps(part, 2) for part in (0x1950a86a20f9469cfc6c, 1001, {"little_endian": True}))
    refuse(tmp_path, stream + data, "asks for os.system")
    nested = b"\x80\x02}X\1\0\0\0wctorch.storage\n_load_from_bytes\nB" + struct.pack("<I", len(stream + data))
    refuse(tmp_path, nested + stream + data + b"\x85Rs.", "asks for os.system")


@pytest.mark.parametrize("name", [
    "os system", "posix system", "nt system", "os popen", "os.path join", "subprocess Popen", "subprocess call",
    "builtins exec", "__builtin__ eval", "__builtin__ execfile", "builtins compile", "builtins __import__",
    "builtins open", "builtins getattr", "builtins setattr", "builtins map", "builtins print", "sys exit",
    "sys modules", "importlib import_module", "runpy run_path", "shutil rmtree", "socket socket", "ctypes CDLL",
    "pickle loads", "_pickle loads", "marshal loads", "types FunctionType", "types CodeType", "functools reduce",
    "operator attrgetter", "_operator methodcaller", "timeit timeit", "code InteractiveInterpreter", "pty spawn",
    "webbrowser open", "threading Thread", "multiprocessing Process", "multiprocessing.util spawnv_passfds",
    "tempfile mktemp", "io open", "_io open_code", "zipfile ZipFile", "urllib.request urlopen",
    "http.client HTTPConnection", "asyncio run", "logging.config listen", "pdb run", "cProfile run",
    "doctest debug_script", "torch load", "torch.hub load", "torch.jit load", "torch.serialization load",
    "torch._utils _import_dotted_name", "numpy load", "numpy.testing._private.utils runstring", "pip main",
    "pandas read_pickle", "joblib load", "dill loads", "cloudpickle.cloudpickle _make_function", "yaml load",
    "__main__ run", "torch.os system", "torch.serialization os.system",
])
@pytest.mark.parametrize("how", ["reduce", "stack", "inst", "obj"])
def test_a_call_of_anything_that_acts_is_refused(tmp_path, name, how):
    module, function = name.split()
    line = f"{module}\n{function}\n".encode()
    text = b"".join(b"\x8c" + bytes([len(part)]) + part.encode() for part in (module, function))
    data = b"\x80\x04}X\1\0\0\0x" + {
        "reduce": b"c" + line + b"X\1\0\0\0a\x85R", "stack": text + b"\x93X\1\0\0\0a\x85R",
        "inst": b"(X\1\0\0\0ai" + line, "obj": b"(c" + line + b"X\1\0\0\0ao"}[how] + b"s."
    refuse(tmp_path, data, "which could run code: refused, nothing was run")


@pytest.mark.parametrize("name", ["os system", "builtins exec", "subprocess Popen"])
def test_a_mention_is_enough_where_no_checkpoint_has_a_use(tmp_path, name):
    refuse(
    tmp_path,
    b"\x80\x02}X\1\0\0\0xc" +
    "\n".join(
        name.split()).encode() +
        b"\ns.",
        "asks for " +
        name.replace(
            " ",
             "."))


def test_eval_is_what_paddle_writes_and_nothing_else(tmp_path, flag):
    (tmp_path / "in.pth").write_bytes(pickle.dumps({"w": Call(eval, "data", {"data": np.ones(3, "f4")})}, 4))
    assert checkpoint(tmp_path / "in.pth", tmp_path / "out").tensors == 1
    os.unlink(tmp_path / "out")
    for args in (["data"], ["os.system('x')", {"data": 1}], [
                 "data", {"data": 1, "__builtins__": {}}], ["data", [1]], []):
        refuse(tmp_path, pickle.dumps({"w": Call(eval, *args)}, 4), "asks for builtins.eval")


def test_getattr_reaches_nothing(tmp_path):
    for target, attribute in ((b"", "__class__"), (1, "real"), ([], "append"), ({"a": 1}, "update")):
        refuse(tmp_path, pickle.dumps({"w": Call(getattr, target, attribute)}, 2), "asks for builtins.getattr")
    # torch.FloatStorage.__class__ is a name again, and calling it is refused.
    data = (b"\x80\x02}X\1\0\0\0wc__builtin__\ngetattr\nctorch\nFloatStorage\nX\x08\0\0\0from_buf\x86R)Rs.")
    refuse(tmp_path, data, "asks for torch.FloatStorage.from_buf")
    data = (b"\x80\x02}X\1\0\0\0wc__builtin__\ngetattr\nc__builtin__\ngetattr\nX\x08\0\0\0__self__\x86R)Rs.")
    refuse(tmp_path, data, "asks for builtins.getattr.__self__")


def test_nothing_of_ours_can_be_changed(tmp_path):
    for name in (b"torch\nFloatStorage\n", b"collections\nOrderedDict\n",
                 b"torch._utils\n_rebuild_tensor_v2\n", b"a\nB\n"):
        for state in (b"}X\7\0\0\0handlerNs", b"N}X\7\0\0\0handlerNs\x86"):
            refuse(tmp_path, b"\x80\x02c" + name + state + b"b.", "is no data: refused")


def test_unknown_objects_are_inert(tmp_path):
    """With __setstate__, __reduce__, slots, items, elements: none of their code is looked for."""
    data = (b"\x80\x02}(X\5\0\0\0modelX\0\0\0\0" + b"0}X\1\0\0\0w" + TENSOR + b"s"
            b"X\1\0\0\0acevil.config\nCfgNode\n)\x81}X\1\0\0\0aK\1sb"
            b"X\1\0\0\0bcevil\nList\n)\x81(K\1K\2eN}X\1\0\0\0sK\1s\x86b"
            b"X\1\0\0\0ccevil\nDict\n)\x81(X\1\0\0\0kK\1u"
            b"X\1\0\0\0dccopy_reg\n_reconstructor\ncevil\nOld\nc__builtin__\nobject\nN\x87R}b"
            b"X\1\0\0\0ecevil\nThing\nK\1K\2\x86R"
            b"X\1\0\0\0fcevil.sub\nsome_function\n"
            b"u.")
    (tmp_path / "in").write_bytes(data)
    assert checkpoint(tmp_path / "in", tmp_path / "out")[:3] == (1, 12, "model")


def test_nothing_is_imported(tmp_path):
    program = ("import sys, numpy; from libswin.convert import checkpoint; before = set(sys.modules)\n"
               "for name in sys.argv[2:]: checkpoint(name, sys.argv[1])\n"
               "extra = {name for name in set(sys.modules) - before if not name.startswith('encodings.')}\n"
               "assert not extra, extra")
    files = [fixture(name) for name in os.listdir(CHECKPOINTS) if not name.startswith(("make", "__"))]
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "out", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ----------------------------------------------------------------------------------------------------------------------
# Programs that would cost memory, time or the stack

def run_limited(tmp_path, data: bytes) -> str:
    """Converts in a child with 512 MB of memory beyond what Python and numpy need, 1 MB of stack, and 20 s of CPU."""
    (tmp_path / "in").write_bytes(data)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (now + (512 << 20),) * 2)
            resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))
            resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
            try:
                said = str(checkpoint(tmp_path / "in", tmp_path / "out")[:3])
            except ConvertError as error:
                said = str(error)
            os.write(theirs, said.encode())
            os._exit(0)
        except BaseException as error:
            os.write(theirs, repr(error).encode())
        finally:
            os._exit(1)
    os.close(theirs)
    with open(ours, "rb") as said:
        text = said.read().decode()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, text
    return text


COSTLY = [
    ("a key nested deeper than the stack", b"\x80\x02}()" + b"\x85" * 100_000 + b"K\1u.", "holds no tensors"),
    ("a list nested deeper than the stack", b"\x80\x02}X\1\0\0\0a" + b"]" * 100_000 + b"a" * 99_999 + b"s.",
     "holds no"),
    ("a memo of a billion entries", b"\x80\x02}r" + struct.pack("<I", 0x3fffffff) + b".", "holds no tensors"),
    ("a string of 2^62 bytes", b"\x80\x04\x8e" + struct.pack("<Q", 1 << 62) + b"x.", "truncated"),
    ("a text of 2^64-1 bytes", b"\x80\x04\x8d" + struct.pack("<Q", (1 << 64) - 1) + b"x.", "truncated"),
    ("a string of -1 bytes", b"\x80\x02T\xff\xff\xff\xff.", "a string of -1 bytes"),
    ("an integer of 2^31-1 bytes", b"\x80\x02\x8b" + struct.pack("<i", (1 << 31) - 1) + b".", "an integer of"),
    ("an integer of a million digits", b"L" + b"9" * 60000 + b"L\n.", "is no integer"),
    ("a line without end", b"(c" + b"x" * 10_000_000, "no end of line"),
    ("a dictionary in itself", b"\x80\x02}q\0X\5\0\0\0modelh\0s.", "holds no tensors"),
    ("a lattice of dictionaries", b"\x80\x02}q\0" + b"".join(
        b"}(" + b"".join(b"X\2\0\0\0k" + bytes([65 + j]) + b"h" + bytes([i])
            for j in range(40)) + b"uq" + bytes([i + 1])
        for i in range(20)) + b".", "holds no tensors"),
    ("a lattice of modules", b"\x80\x02cx\nModule\n)\x81q\0" + b"".join(
        b"cx\nModule\n)\x81q" + bytes([i + 1]) + b"}X\x08\0\0\0_modules}(" + b"".join(
            b"X\1\0\0\0" + bytes([65 + j]) + b"h" + bytes([i]) for j in range(40)) + b"usb"
        for i in range(30)) + b".", "holds no tensors"),
]


@pytest.mark.parametrize("case", COSTLY, ids=[case[0] for case in COSTLY])
def test_programs_that_cost_nothing(tmp_path, case):
    _, data, message = case
    assert message in run_limited(tmp_path, data)


def test_a_program_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(pickles, "_MAX_STEPS", 1000)
    refuse(tmp_path, b"\x80\x02" + b"N0" * 500 + b"}.", "longer than 1000 steps")


def tensor(storage=b"F", numel=6, offset=0, size=b"(I2\nI3\nt", stride=b"(I3\nI1\nt", key=b"0", entry=24):
    """A zip archive with one tensor."""
    kinds = {b"F": b"torch\nFloatStorage", b"Q": b"torch\nQInt8Storage", b"U": b"torch.storage\nUntypedStorage",
             b"X": b"evil\nFloatStorage"}
    program = (b"(dVw\nctorch._utils\n_rebuild_tensor_v2\n((S'storage'\nc" + kinds[storage] + b"\nS'" + key
               + b"'\nS'cpu'\nI%d\ntQI%d\n" % (numel, offset) + size + stride + b"I00\nNtRs.")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("x/data.pkl", program)
        archive.writestr("x/data/0", bytes(entry))
    return made.getvalue()


def test_the_honest_tensor(tmp_path):
    (tmp_path / "in").write_bytes(tensor())
    assert checkpoint(tmp_path / "in", tmp_path / "out")[:2] == (1, 24)


@pytest.mark.parametrize("change, message", [
    ({"size": b"(I2\nI4\nt"}, "needs 28 bytes, its storage has 24"),
    ({"offset": 1}, "needs 28 bytes, its storage has 24"),
    ({"offset": -1}, "has the offset"),
    ({"size": b"(I-2\nI3\nt"}, "has the shape"),
    ({"stride": b"(I-3\nI1\nt"}, "has the stride"),
    ({"stride": b"(I1\nt"}, "2 dimensions and 1 strides"),
    ({"size": b"(I2\nF3\nt"}, "has the shape"),
    ({"size": b"(" + b"I1\n" * 40 + b"t", "stride": b"(" + b"I1\n" * 40 + b"t"}, "has 40 dimensions"),
    ({"size": b"(I281474976710655\nI281474976710655\nt"}, "its storage has 24"),
    ({"size": b"(L99999999999999999999999L\nI3\nt"}, "has the shape"),
    ({"stride": b"(I281474976710655\nI281474976710655\nt"}, "its storage has 24"),
    ({"size": b"(I1000000\nI1000000\nt", "stride": b"(I0\nI0\nt"}, "1 tensors claim 4000000000000 bytes"),
    ({"numel": 7}, "entry 'x/data/0' has 24 bytes, 28 expected"),
    ({"numel": -1}, "'0' and -1 elements"),
    ({"numel": 1 << 62}, "elements"),
    ({"key": b"1"}, "has no entry 'x/data/1'"),
    ({"key": b"../../etc/passwd"}, "has no entry"),
    ({"storage": b"X"}, "of the class evil.FloatStorage"),
    ({"storage": b"Q"}, "holds no tensors"),
    ({"size": b"(I0\nI2147483647\nI2147483647\nt", "stride": b"(I0\nI0\nI0\nt"}, "which no memory holds"),
    ({"size": b"N"}, "not made of a storage, an offset, a shape and strides"),
    ({"size": b"(I2\nI3\nt", "stride": b"V3\n"}, "not made of a storage, an offset, a shape and strides"),
])
def test_tensors_outside_their_storage(tmp_path, change, message):
    refuse(tmp_path, tensor(**change), message)


def test_a_storage_of_bytes_needs_a_type(tmp_path):
    refuse(tmp_path, tensor(storage=b"U", numel=24), "holds no tensors")


@pytest.mark.parametrize("line", [b"'.',{{}:1}", b"'',{[]}", b"'a", b"(" * 5000, b"'\\x4'", b"'\0'", b"'a' 'b'", b""])
def test_text_that_is_no_quoted_string(tmp_path, line):
    refuse(tmp_path, b"(S" + line + b"\n.", "no quoted string")


@pytest.mark.parametrize("pairs", [b"cfoo\nBar\n)R", b"N", b"K\x05", b"\x88", b"S'ab'\n"])
def test_an_ordered_dict_of_no_pairs(tmp_path, pairs):
    refuse(tmp_path, b"ccollections\nOrderedDict\n(" + pairs + b"tR.", "an OrderedDict is made of something")


@pytest.mark.parametrize("args, message", [
    (b"N", "pickle calls something"),
    (b")", "a tensor is made of 0 parts"),
    (b"(NNNNt", "not made of a storage"),
])
def test_wrong_arguments(tmp_path, args, message):
    refuse(tmp_path, b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n" + args + b"R.", message)


@pytest.mark.parametrize("state", [
    b"N", b")", b"(K\1K\2t", b"(K\1K\3\x85NU\1bNt", b"(K\1NNNNt", b"(K\1K\4\x85cnumpy\ndtype\nU\2f4\x85RI00\nU\4abcdt",
    b"(K\1U\1a\x85cnumpy\ndtype\nU\2f4\x85RI00\nU\4abcdt",
    b"(K\1J\xff\xff\xff\xff\x85cnumpy\ndtype\nU\2f4\x85RI00\nU\4abcdt",
    b"(K\1K\1\x85cnumpy\ndtype\nU\2f4\x85RI00\nX\4\0\0\0ab\xc4\x80t",
])
def test_wrong_arrays(tmp_path, state):
    """None is a tensor, and none does harm."""
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\0\x85U\1btR"
    refuse(tmp_path, b"\x80\x02}U\1w" + array + state + b"bs.",
           "numpy array|holds no tensors|a tensor has|needs 16 bytes|no bytes|latin-1")


def test_names_that_json_cannot_carry(tmp_path):
    refuse(tmp_path, pickle.dumps({"__metadata__": np.ones(2, "f4")}), "'__metadata__', which safetensors keeps")
    refuse(tmp_path, pickle.dumps({"\udcff": np.ones(2, "f4")}), "no valid text")


def test_a_storage_in_a_storage_in_a_storage(tmp_path):
    inner = b"\x80\x02."
    for _ in range(3):
        inner = b"\x80\x02ctorch.storage\n_load_from_bytes\nB" + struct.pack("<I", len(inner)) + inner + b"\x85R."
    refuse(tmp_path, inner, "contains another saved storage")


# ----------------------------------------------------------------------------------------------------------------------
# Real files, damaged

FILES = sorted(name for name in os.listdir(CHECKPOINTS) if not name.startswith(("make", "__")))


def attempt(path, out) -> None:
    try:
        checkpoint(path, out)
    except ConvertError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("name", FILES)
def test_truncated_anywhere(tmp_path, name):
    data = open(fixture(name), "rb").read()
    (tmp_path / "in").write_bytes(data)
    # Shorter and shorter: a file that is written anew each time costs more than all else here.
    for length in [len(data) - 1, *reversed(range(0, len(data) - 1, 13))]:
        os.truncate(tmp_path / "in", length)
        with pytest.raises(ConvertError):
            checkpoint(tmp_path / "in", tmp_path / "out")
    assert os.listdir(tmp_path) == ["in"]


@pytest.mark.parametrize("name", FILES)
def test_damaged_anywhere(tmp_path, name):
    """Bytes changed, removed, doubled: an error or a conversion, and never any other end."""
    seed = int(os.environ.get("SWIN_TEST_SEED", "1"))
    data = open(fixture(name), "rb").read()
    for round_ in range(150):
        rng = random.Random(f"{seed} {name} {round_}")
        bad = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(len(bad))
            change = rng.randrange(4)
            if change == 0:
                bad[at] ^= 1 << rng.randrange(8)
            elif change == 1:
                bad[at] = rng.choice(b"\x00\x7f\x80\xff().0128RQbcosu}]")
            elif change == 2:
                del bad[at:at + rng.randrange(1, 9)]
            else:
                bad[at:at] = bad[at:at + rng.randrange(1, 40)]
        for old in os.listdir(tmp_path):  # overwritten, a file is flushed to the disk
            os.unlink(tmp_path / old)
        (tmp_path / "in").write_bytes(bad)
        try:
            attempt(tmp_path / "in", tmp_path / "out")
        except Exception as error:
            raise AssertionError(f"seed {seed}, round {round_} of {name}") from error


def test_the_builtins_are_as_they_were():
    """Run last: no file above has changed them."""
    assert builtins.eval is eval and not hasattr(builtins, "handler")
