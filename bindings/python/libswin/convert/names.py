# SPDX-License-Identifier: MIT
"""What the names in a pickle mean.

A pickle builds everything but numbers, text and containers by naming a Python object and having it called. Here a name
is only ever looked up in the table below, never imported, and what the table holds are our own few functions that
arrange data. All other names stand for nothing: they become `Opaque` objects that keep what was put into them, so that
the configuration, the optimizer or the log beside the weights does not stand in the way.

That alone is safe. Two rules then refuse a file, by name, that is plainly not a checkpoint, or one with a passenger:

  1. a name out of a module that acts on the machine (os, subprocess, builtins, ...) and is not in the table;
  2. a call of an unknown name that is spelled neither like a class nor like the helpers that rebuild one: a function
     would run if torch loaded this file. Making an object of a class is no such call, whatever the class is called.
"""

from __future__ import annotations

import io
import re
from typing import Any, Callable, Protocol

from ..errors import ConvertError
from .source import Source
from .tensors import (MAX_DIMENSIONS, NUMPY_CODES, TORCH_DTYPES, TORCH_STORAGES, Blob, Literal, Storage, Tensor,
                      column_major, latin1_bytes, row_major, shown)


BYTES_PER_STEP = 4096  # read or checked in the time of a step
_MAX_NAME = 1000       # characters


class Loader(Protocol):
    """What a handler may ask of the file it is in."""

    def nested(self, source: Source) -> Any: ...

    def spend(self, steps: int) -> None: ...


class Opaque:
    """An object whose class nobody here knows; inert."""

    __slots__ = ("kind", "state", "items", "elements")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.state: Any = None
        self.items: dict[Any, Any] = {}
        self.elements: list[Any] = []


class Name:
    """A name out of a pickle. `handler` is None where the table does not know it; `value` is what it stands for when it
    is not called, such as an element type."""

    __slots__ = ("text", "handler", "value")

    def __init__(self, text: str, handler: Callable[[Loader, tuple], Any] | None = None, value: Any = None) -> None:
        self.text = text
        self.handler = handler
        self.value = value


class DType:
    """A numpy element type; its byte order comes later."""

    __slots__ = ("code", "swapped")

    def __init__(self, code: str) -> None:
        self.code = code
        self.swapped = False

    def build(self, state: Any) -> None:
        if type(state) is tuple and len(state) > 1 and state[1] in (">", b">"):
            self.swapped = True


class Array:
    """A numpy array under construction, or one of a kind that safetensors has no name for (`tensor` stays None)."""

    __slots__ = ("tensor",)

    def __init__(self) -> None:
        self.tensor: Tensor | None = None

    def build(self, state: Any) -> None:
        if type(state) is not tuple or len(state) != 5:
            raise ConvertError("a numpy array has no state that numpy writes")
        _, shape, dtype, fortran, data = state
        self.tensor = _array(shape, dtype, bool(fortran), data)


def _array(shape: Any, dtype: Any, fortran: bool, data: Any) -> Tensor | None:
    if type(dtype) is not DType or dtype.code not in NUMPY_CODES or type(data) is list:
        return None
    if type(data) is str:
        data = latin1_bytes(data.encode("utf-8", "surrogatepass"))
    if type(data) is bytes:
        data = Literal(data)
    if type(data) not in (Literal, Blob) or type(shape) is not tuple or not all(type(n) is int for n in shape):
        raise ConvertError("a numpy array has no state that numpy writes")
    if len(shape) > MAX_DIMENSIONS:
        raise ConvertError(f"a numpy array has {len(shape)} dimensions, at most {MAX_DIMENSIONS} are known")
    stride = column_major(shape) if fortran else row_major(shape)
    # The length of text is known only when it is read.
    limit = len(data.data) if type(data) is Literal else None if data.text else data.source.size
    return Tensor(data, NUMPY_CODES[dtype.code], shape, stride, swapped=dtype.swapped, limit=limit)


# ----------------------------------------------------------------------------------------------------------------------
# Handlers. Their arguments come from the file: nothing about them is sure.

def _first(args: tuple, what: str) -> Any:
    if not args:
        raise ConvertError(f"{what} is called without arguments")
    return args[0]


def _ordered_dict(loader: Loader, args: tuple) -> dict:
    made: dict[Any, Any] = {}
    pairs = args[0] if args else ()
    if type(pairs) not in (list, tuple, dict):
        raise ConvertError("an OrderedDict is made of something that is no list of pairs")
    loader.spend(len(pairs))
    for pair in pairs.items() if type(pairs) is dict else pairs:
        if type(pair) not in (list, tuple) or len(pair) != 2:
            raise ConvertError("an OrderedDict is made of something that is no pair")
        made[key(pair[0])] = pair[1]
    return made


def _rebuild_tensor(loader: Loader, args: tuple) -> Tensor | Opaque:
    if len(args) < 4:
        raise ConvertError(f"a tensor is made of {len(args)} parts, at least 4 expected")
    storage, offset, shape, stride = args[:4]
    if type(storage) is not Storage or type(shape) is not tuple or type(stride) is not tuple:
        raise ConvertError("a tensor is not made of a storage, an offset, a shape and strides")
    if storage.dtype is None:
        return Opaque("torch.Tensor of an element type that safetensors has no name for")
    return Tensor(storage, storage.dtype, shape, stride, offset, storage.swapped, storage.nbytes)


def _rebuild_tensor_v3(loader: Loader, args: tuple) -> Tensor | Opaque:
    """Element types without a storage class of their own are written beside the tensor."""
    if len(args) < 7 or type(args[0]) is not Storage:
        raise ConvertError("a tensor is not made of a storage and 6 more parts")
    storage, dtype = args[0], args[6]
    typed = Storage(dtype.value if type(dtype) is Name else None, storage.nbytes, storage, storage.swapped)
    return _rebuild_tensor(loader, (typed, *args[1:]))


def _rebuild_parameter(loader: Loader, args: tuple) -> Any:
    return _first(args, "a parameter")


def _rebuild_from_type(loader: Loader, args: tuple) -> Any:
    """A tensor of a subclass, or one that carries attributes: (function, class, arguments, attributes)."""
    if len(args) < 3 or type(args[0]) is not Name or type(args[2]) is not tuple:
        raise ConvertError("a tensor subclass is not made of a function, a class and arguments")
    return call(loader, args[0], args[2])


def _load_from_bytes(loader: Loader, args: tuple) -> Any:
    data = _first(args, "torch.storage._load_from_bytes")
    if type(data) is Blob and data.text:
        loader.spend(data.source.size // BYTES_PER_STEP)
        data = latin1_bytes(data.source.read_at(0, data.source.size))
    if type(data) is bytes:
        return loader.nested(Source(io.BytesIO(data), 0, len(data)))
    if type(data) is not Blob:
        raise ConvertError("torch.storage._load_from_bytes is called with something that is no saved storage")
    return loader.nested(data.source)


def _size(loader: Loader, args: tuple) -> tuple:
    _first(args, "torch.Size")
    return _tuple(loader, args)


def _dtype(loader: Loader, args: tuple) -> DType:
    code = _first(args, "numpy.dtype")
    if type(code) is bytes:
        code = code.decode("latin-1")
    return DType(code if type(code) is str else "?")


def _reconstruct(loader: Loader, args: tuple) -> Array:
    return Array()


def _frombuffer(loader: Loader, args: tuple) -> Array:
    if len(args) < 4:
        raise ConvertError("a numpy array is not made of a buffer, a type, a shape and an order")
    made = Array()
    made.tensor = _array(args[2], args[1], args[3] == "F", args[0])
    return made


def _encode(loader: Loader, args: tuple) -> bytes | Blob:
    """Protocol 2 has no bytes; numpy writes text that latin-1 turns into them."""
    text = _first(args, "_codecs.encode")
    if len(args) > 1 and args[1] not in ("latin1", "latin-1"):
        raise ConvertError(f"_codecs.encode is called for {shown(args[1])}, only latin1 is known")
    if type(text) is Blob:
        return text
    if type(text) is not str:
        raise ConvertError("_codecs.encode is called with something that is no text")
    return latin1_bytes(text.encode("utf-8", "surrogatepass"))


def _bytes(loader: Loader, args: tuple) -> Any:
    return _encode(loader, args) if args and type(args[0]) is str else args[0] if args else b""


def _same(loader: Loader, args: tuple) -> Any:
    return args[0] if args else None


def _tuple(loader: Loader, args: tuple) -> tuple:
    made = _same(loader, args)
    if type(made) not in (list, tuple):
        return ()
    loader.spend(len(made))
    return tuple(made)


def _list(loader: Loader, args: tuple) -> list:
    """Sets are kept as lists too: they hold no weights."""
    return list(_tuple(loader, args))


def _dict(loader: Loader, args: tuple) -> Any:
    return {} if not args else args[0] if type(args[0]) is dict else _ordered_dict(loader, args)


def _attribute(loader: Loader, args: tuple) -> Name:
    """How older protocols spell `Class.method`. Only names have attributes here, and those are names again."""
    if len(args) != 2 or type(args[0]) is not Name or type(args[1]) is not str:
        raise ConvertError("the file asks for builtins.getattr of something that is no class, which could run code: "
                           "refused, nothing was run")
    return resolve(*(args[0].text + "." + args[1]).rsplit(".", 1))


def _paddle_data(loader: Loader, args: tuple) -> Any:
    """paddle.save writes some tensors as eval("data", {"data": array}). Nothing else passes; nothing is evaluated."""
    if len(args) != 2 or args[0] != "data" or type(args[1]) is not dict or list(args[1]) != ["data"]:
        raise refused("builtins.eval")
    return args[1]["data"]


def _instance(loader: Loader, args: tuple) -> Any:
    """copyreg's three ways to make an object of a class; the third argument holds the items of a kind of dictionary."""
    made = instance(_first(args, "an object"))
    if type(made) is Opaque and len(args) > 2 and type(args[2]) is dict:
        loader.spend(len(args[2]))
        made.items.update(args[2])
    return made


def _scalar(loader: Loader, args: tuple) -> Opaque:
    return Opaque("numpy scalar")


def _unusable(loader: Loader, args: tuple) -> Opaque:
    return Opaque("torch.Tensor of a kind that safetensors has no name for")


_TABLE: dict[str, Callable[[Loader, tuple], Any] | None] = {
    "collections.OrderedDict": _ordered_dict,
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v3": _rebuild_tensor_v3,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
    "torch._utils._rebuild_sparse_tensor": _unusable,
    "torch._utils._rebuild_sparse_csr_tensor": _unusable,
    "torch._utils._rebuild_qtensor": _unusable,
    "torch._utils._rebuild_meta_tensor_no_storage": _unusable,
    "torch._utils._rebuild_wrapper_subclass": _unusable,
    "torch._utils._rebuild_nested_tensor": _unusable,
    "torch._tensor._rebuild_from_type": _rebuild_from_type,
    "torch._tensor._rebuild_from_type_v2": _rebuild_from_type,
    "torch.storage._load_from_bytes": _load_from_bytes,
    "torch.Size": _size,
    "torch.device": _same,
    "torch.serialization._get_layout": _same,
    "numpy.dtype": _dtype,
    "numpy.core.multiarray._reconstruct": _reconstruct,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy.core.numeric._frombuffer": _frombuffer,
    "_codecs.encode": _encode,
    "paddle.framework.io_utils._reconstruct_dense_tensor_data": _same,
    "builtins.bytes": _bytes,
    "builtins.bytearray": _bytes,
    "builtins.tuple": _tuple,
    "builtins.list": _list,
    "builtins.set": _list,
    "builtins.frozenset": _list,
    "builtins.dict": _dict,
    "builtins.getattr": _attribute,
    "builtins.eval": _paddle_data,
    "copyreg._reconstructor": _instance,
    "copyreg.__newobj__": _instance,
    "copyreg.__newobj_ex__": _instance,
}

#: Harmless, though their module or their spelling says otherwise: they become opaque objects.
_INERT = frozenset("""
    builtins.object builtins.str
    builtins.int builtins.float builtins.bool builtins.complex builtins.slice builtins.range builtins.type
    builtins.Ellipsis builtins.NotImplemented builtins.Exception builtins.ValueError builtins.long builtins.unicode
    builtins.xrange builtins.property
    types.SimpleNamespace types.MappingProxyType functools.partial re._compile array._array_reconstructor array.array
    pathlib._local.PosixPath pathlib._local.WindowsPath
    collections.defaultdict collections.deque datetime.datetime datetime.date datetime.time datetime.timedelta
    datetime.timezone
""".split())

#: Modules of the standard library whose functions act.
_ACTING = frozenset("""
    os posixpath ntpath builtins sys subprocess shutil pty tty commands popen2 platform socket socketserver ssl
    select asyncio selectors signal threading _thread multiprocessing concurrent sched atexit runpy importlib imp
    pkgutil zipimport zipapp code codeop compileall py_compile ast dis inspect types functools operator _operator
    itertools ctypes _ctypes mmap pickle _pickle marshal shelve dbm copyreg codecs _codecs io _io tempfile glob
    fileinput linecache tokenize gc weakref faulthandler traceback trace pdb bdb cProfile profile timeit doctest
    unittest test lib2to3 pydoc site sysconfig venv ensurepip distutils webbrowser antigravity turtle tkinter
    idlelib curses readline cmd http urllib urllib2 httplib xmlrpc ftplib telnetlib smtplib smtpd poplib imaplib
    nntplib wsgiref cgi logging resource fcntl pwd spwd grp crypt sqlite3 zipfile tarfile gzip bz2 lzma getpass
    nturl2path this exceptions
""".split())

#: How libraries call the functions that remake an object: __pyx_unpickle_X, _reconstruct_x, _rebuild_x, __x_ctor.
_REBUILDS = re.compile(r"^(pyx_)?(unpickle|reconstruct|rebuild)(_|$)|_ctor$")

_ALIASES = (
    ("posix.", "os."), ("nt.", "os."), ("__builtin__.", "builtins."), ("copy_reg.", "copyreg."),
    ("numpy._core.", "numpy.core."), ("torch.cuda.", "torch."),
    ("torch.storage.UntypedStorage", "torch.UntypedStorage"), ("torch.storage.TypedStorage", "torch.TypedStorage"),
)


def resolve(module: str, name: str) -> Name:
    """What `module.name` stands for, or a refusal."""
    text = f"{module}.{name}"
    if len(text) > _MAX_NAME:
        raise ConvertError(f"the pickle names something by {len(text)} characters, no class is called so")
    for old, new in _ALIASES:
        if text.startswith(old):
            text = new + text[len(old):]
    if text in _TABLE:
        return Name(text, _TABLE[text])
    if text.startswith("torch."):
        tail = text[len("torch."):]
        if tail in TORCH_STORAGES:
            return Name(text, value=TORCH_STORAGES[tail])
        if tail in TORCH_DTYPES:
            return Name(text, value=TORCH_DTYPES[tail])
    if text not in _INERT and text.split(".", 1)[0] in _ACTING:
        raise refused(text)
    return Name(text)


def refused(text: str) -> ConvertError:
    shown = "".join(c if c.isprintable() else "?" for c in text[:100])
    return ConvertError(f"the file asks for {shown}, which could run code: refused, nothing was run")


def call(loader: Loader, function: Any, args: Any) -> Any:
    """What a pickle means by `function(*args)`."""
    if type(function) is not Name or type(args) is not tuple:
        raise ConvertError("the pickle calls something that is no function")
    if function.handler is not None:
        return function.handler(loader, args)
    last = function.text.rsplit(".", 1)[-1].lstrip("_")
    if function.text in _INERT or last[:1].isupper() or _REBUILDS.search(last):
        return Opaque(function.text)
    raise refused(function.text)


def instance(cls: Any) -> Any:
    """What a pickle means by a new object of `cls`."""
    if type(cls) is not Name:
        raise ConvertError("the pickle makes an object of something that is no class")
    if cls.text == "collections.OrderedDict":
        return {}
    return Opaque(cls.text)


_MAX_KEY = 16  # parts of a tuple: all of them are hashed each time
_PLAIN = (str, int, float, bool, bytes, type(None))


def key(value: Any) -> Any:
    """`value` as a dictionary key. What is no plain key is one of a kind: hashing what a file nested ten million deep
    would exhaust the stack."""
    if type(value) in _PLAIN:
        return value
    if type(value) is tuple and len(value) <= _MAX_KEY and all(type(part) in _PLAIN for part in value):
        return value
    return Opaque("key")
