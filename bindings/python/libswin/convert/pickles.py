# SPDX-License-Identifier: MIT
"""Reads the data out of a pickle, and does nothing else.

This is a machine for the pickle language of its own, not a subclass of `pickle.Unpickler`, for what a subclass cannot
keep a hostile file from doing: `find_class` decides about names only, while attributes are still set on whatever is at
hand, the extension registry of the process is consulted, a 9-byte file has 16 GB of memo allocated, and a key that is a
tuple nested a million deep overflows the C stack. Here every opcode arranges numbers, text and containers; there is no
object to call, and long strings stay in the file until a tensor is written.
"""

from __future__ import annotations

import ast
import re
import struct
from typing import Any, Callable

from ..errors import ConvertError
from . import names
from .names import Array, DType, Loader, Name, Opaque
from .source import Cursor
from .tensors import Blob, shown

_LONG = 4096                # strings from this length on stay in the file
_MAX_STEPS = 10_000_000     # of all pickles of a file; a detector with its optimizer has some 100 000
_MAX_INTEGER = 1024         # bytes of an integer
_QUOTED = re.compile(rb"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\"""")


class Steps:
    """How much work a file may still make: one for an opcode, and for each element that is copied by one."""

    def __init__(self) -> None:
        self._left = _MAX_STEPS

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise ConvertError(f"the pickle is longer than {_MAX_STEPS} steps, no checkpoint is")


class _Mark:
    __slots__ = ()


_MARK = _Mark()
_OPCODES: dict[int, Callable[["Machine"], None]] = {}


def _opcode(code: bytes) -> Callable:
    def register(method: Callable) -> Callable:
        _OPCODES[code[0]] = method
        return method
    return register


class Machine:
    """One pickle. `persistent` turns torch's persistent ids into storages."""

    def __init__(self, cursor: Cursor, loader: Loader, persistent: Callable[[Any], Any] | None = None) -> None:
        self._cursor = cursor
        self._loader = loader
        self._persistent = persistent
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        """Executes up to the end of the pickle; the cursor then stands behind it."""
        cursor, spend = self._cursor, self._loader.spend
        while True:
            spend(1)
            start = cursor.position
            code = cursor.take(1)[0]
            if code == 0x2e:  # STOP
                return self._pop()
            opcode = _OPCODES.get(code)
            if opcode is None:
                raise ConvertError(f"no pickle, or a damaged one: byte {code:#04x} at offset {start} is no opcode of a "
                                   "checkpoint")
            opcode(self)

    # --- the stack

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            raise ConvertError("no pickle, or a damaged one: nothing on the stack before offset "
                               f"{self._cursor.position}")
        return self._stack.pop()

    def _pop_mark(self) -> list[Any]:
        for first in range(len(self._stack) - 1, -1, -1):
            if self._stack[first] is _MARK:
                items = self._stack[first + 1:]
                del self._stack[first:]
                return items
        raise ConvertError(f"damaged pickle: no mark on the stack before offset {self._cursor.position}")

    def _peek(self) -> Any:
        value = self._pop()
        self._stack.append(value)
        return value

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._cursor.take(struct.calcsize(form)))[0]

    # --- numbers and constants

    @_opcode(b"\x80")
    def _proto(self) -> None:
        version = self._number("<B")
        if version > 5:
            raise ConvertError(f"the pickle has protocol {version}, 5 is the last one known")

    @_opcode(b"\x95")
    def _frame(self) -> None:
        self._number("<Q")

    @_opcode(b"N")
    def _none(self) -> None:
        self._push(None)

    @_opcode(b"\x88")
    def _true(self) -> None:
        self._push(True)

    @_opcode(b"\x89")
    def _false(self) -> None:
        self._push(False)

    @_opcode(b"J")
    def _binint(self) -> None:
        self._push(self._number("<i"))

    @_opcode(b"K")
    def _binint1(self) -> None:
        self._push(self._number("<B"))

    @_opcode(b"M")
    def _binint2(self) -> None:
        self._push(self._number("<H"))

    @_opcode(b"G")
    def _binfloat(self) -> None:
        self._push(self._number(">d"))

    @_opcode(b"\x8a")
    def _long1(self) -> None:
        self._push(int.from_bytes(self._cursor.take(self._number("<B")), "little", signed=True))

    @_opcode(b"\x8b")
    def _long4(self) -> None:
        count = self._number("<i")
        if not 0 <= count <= _MAX_INTEGER:
            raise ConvertError(f"damaged pickle: an integer of {count} bytes")
        self._push(int.from_bytes(self._cursor.take(count), "little", signed=True))

    @_opcode(b"I")
    def _int(self) -> None:
        line = self._line()
        self._push({"00": False, "01": True}[line] if line in ("00", "01") else self._decimal(line))

    @_opcode(b"L")
    def _longtext(self) -> None:
        self._push(self._decimal(self._line().rstrip("L")))

    @_opcode(b"F")
    def _floattext(self) -> None:
        line = self._line()
        try:
            self._push(float(line))
        except ValueError:
            raise ConvertError(f"damaged pickle: {line[:40]!r} is no number") from None

    def _line(self) -> str:
        return self._cursor.line().decode("latin-1")

    def _decimal(self, line: str) -> int:
        try:
            return int(line) if len(line) <= _MAX_INTEGER else int("")
        except ValueError:
            raise ConvertError(f"damaged pickle: {line[:40]!r} is no integer") from None

    # --- strings

    def _string(self, count: int, text: bool, latin1: bool = False) -> None:
        if count >= _LONG:
            start = self._cursor.skip(count)
            self._push(Blob(self._cursor.source.part(start, count), text))
            return
        data = self._cursor.take(count)
        if latin1:
            self._push(data.decode("latin-1"))
        elif text:
            self._push(self._utf8(data))
        else:
            self._push(data)

    def _utf8(self, data: bytes) -> str:
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeError:
            raise ConvertError(f"damaged pickle: text before offset {self._cursor.position} is no UTF-8") from None

    @_opcode(b"X")
    def _binunicode(self) -> None:
        self._string(self._number("<I"), True)

    @_opcode(b"\x8c")
    def _short_binunicode(self) -> None:
        self._string(self._number("<B"), True)

    @_opcode(b"\x8d")
    def _binunicode8(self) -> None:
        self._string(self._number("<Q"), True)

    @_opcode(b"B")
    def _binbytes(self) -> None:
        self._string(self._number("<I"), False)

    @_opcode(b"C")
    def _short_binbytes(self) -> None:
        self._string(self._number("<B"), False)

    @_opcode(b"\x8e")
    def _binbytes8(self) -> None:
        self._string(self._number("<Q"), False)

    @_opcode(b"\x96")
    def _bytearray8(self) -> None:
        self._string(self._number("<Q"), False)

    # Python 2 wrote its byte strings with these; names and array contents alike.

    @_opcode(b"T")
    def _binstring(self) -> None:
        count = self._number("<i")
        if count < 0:
            raise ConvertError(f"damaged pickle: a string of {count} bytes")
        self._string(count, False, latin1=True)

    @_opcode(b"U")
    def _short_binstring(self) -> None:
        self._string(self._number("<B"), False, latin1=True)

    @_opcode(b"S")
    def _stringtext(self) -> None:
        line = self._cursor.line()
        # Only what is one quoted string goes to Python's own parser.
        try:
            value = ast.literal_eval("b" + line.decode("ascii")) if _QUOTED.fullmatch(line) else None
        except (SyntaxError, ValueError):
            value = None
        if type(value) is not bytes:
            raise ConvertError(f"damaged pickle: no quoted string before offset {self._cursor.position}")
        self._push(value.decode("latin-1"))

    @_opcode(b"V")
    def _unicodetext(self) -> None:
        try:
            self._push(self._cursor.line().decode("raw-unicode-escape"))
        except UnicodeError:
            raise ConvertError(f"damaged pickle: no text before offset {self._cursor.position}") from None

    # --- containers

    @_opcode(b"(")
    def _mark(self) -> None:
        self._stack.append(_MARK)

    @_opcode(b"0")
    def _discard(self) -> None:
        if self._stack and self._stack[-1] is _MARK:
            self._stack.pop()
        else:
            self._pop()

    @_opcode(b"1")
    def _discard_mark(self) -> None:
        self._pop_mark()

    @_opcode(b"2")
    def _duplicate(self) -> None:
        self._push(self._peek())

    @_opcode(b")")
    def _empty_tuple(self) -> None:
        self._push(())

    @_opcode(b"t")
    def _tuple(self) -> None:
        self._push(tuple(self._pop_mark()))

    @_opcode(b"\x85")
    def _tuple1(self) -> None:
        self._push((self._pop(),))

    @_opcode(b"\x86")
    def _tuple2(self) -> None:
        second = self._pop()
        self._push((self._pop(), second))

    @_opcode(b"\x87")
    def _tuple3(self) -> None:
        third, second = self._pop(), self._pop()
        self._push((self._pop(), second, third))

    @_opcode(b"]")
    def _empty_list(self) -> None:
        self._push([])

    @_opcode(b"l")
    def _list(self) -> None:
        self._push(self._pop_mark())

    @_opcode(b"a")
    def _append(self) -> None:
        value = self._pop()
        self._extend([value])

    @_opcode(b"e")
    def _appends(self) -> None:
        self._extend(self._pop_mark())

    def _extend(self, values: list[Any]) -> None:
        target = self._peek()
        if type(target) is Opaque:
            target = target.elements
        if type(target) is not list:
            raise ConvertError(f"damaged pickle: no list to append to before offset {self._cursor.position}")
        target.extend(values)

    # Sets hold no weights: a list keeps their members as well.

    @_opcode(b"\x8f")
    def _empty_set(self) -> None:
        self._push([])

    @_opcode(b"\x90")
    def _add_items(self) -> None:
        self._extend(self._pop_mark())

    @_opcode(b"\x91")
    def _frozenset(self) -> None:
        self._push(self._pop_mark())

    @_opcode(b"}")
    def _empty_dict(self) -> None:
        self._push({})

    @_opcode(b"d")
    def _dict(self) -> None:
        items = self._pop_mark()
        self._push({})
        self._update(items)

    @_opcode(b"s")
    def _set_item(self) -> None:
        value = self._pop()
        self._update([self._pop(), value])

    @_opcode(b"u")
    def _set_items(self) -> None:
        self._update(self._pop_mark())

    def _update(self, items: list[Any]) -> None:
        target = self._peek()
        if type(target) is Opaque:
            target = target.items
        if type(target) is not dict or len(items) % 2:
            raise ConvertError(f"damaged pickle: no dictionary to fill before offset {self._cursor.position}")
        for i in range(0, len(items), 2):
            target[names.key(items[i])] = items[i + 1]

    # --- the memo

    @_opcode(b"q")
    def _binput(self) -> None:
        self._memo[self._number("<B")] = self._peek()

    @_opcode(b"r")
    def _long_binput(self) -> None:
        self._memo[self._number("<I")] = self._peek()

    @_opcode(b"p")
    def _put(self) -> None:
        self._memo[self._decimal(self._line())] = self._peek()

    @_opcode(b"\x94")
    def _memoize(self) -> None:
        self._memo[len(self._memo)] = self._peek()

    def _remember(self, index: int) -> None:
        if index not in self._memo:
            raise ConvertError(f"damaged pickle: memo {shown(index)} is used before it is set, before offset "
                               f"{self._cursor.position}")
        self._push(self._memo[index])

    @_opcode(b"h")
    def _binget(self) -> None:
        self._remember(self._number("<B"))

    @_opcode(b"j")
    def _long_binget(self) -> None:
        self._remember(self._number("<I"))

    @_opcode(b"g")
    def _get(self) -> None:
        self._remember(self._decimal(self._line()))

    # --- names, and what is made by them

    @_opcode(b"c")
    def _global(self) -> None:
        module, name = self._utf8(self._cursor.line()), self._utf8(self._cursor.line())
        self._push(names.resolve(module, name))

    @_opcode(b"\x93")
    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            raise ConvertError(f"damaged pickle: a name is no text, before offset {self._cursor.position}")
        self._push(names.resolve(module, name))

    @_opcode(b"R")
    def _reduce(self) -> None:
        args = self._pop()
        self._push(names.call(self._loader, self._pop(), args))

    @_opcode(b"\x81")
    def _new_object(self) -> None:
        self._pop()
        self._push(names.instance(self._pop()))

    @_opcode(b"\x92")
    def _new_object_ex(self) -> None:
        self._pop()
        self._pop()
        self._push(names.instance(self._pop()))

    @_opcode(b"i")
    def _inst(self) -> None:
        module, name = self._utf8(self._cursor.line()), self._utf8(self._cursor.line())
        args = tuple(self._pop_mark())
        self._push(names.call(self._loader, names.resolve(module, name), args))

    @_opcode(b"o")
    def _obj(self) -> None:
        items = self._pop_mark()
        if not items:
            raise ConvertError(f"damaged pickle: an object without a class before offset {self._cursor.position}")
        self._push(names.call(self._loader, items[0], tuple(items[1:])))

    @_opcode(b"b")
    def _build(self) -> None:
        state, target = self._pop(), self._peek()
        if type(target) in (Array, DType):
            target.build(state)
        elif type(target) is Opaque:
            target.state = state
        elif type(target) is Name:
            raise ConvertError(f"the pickle changes {target.text[:100]}, which is no data: refused, nothing was run")
        # Anything else are attributes of containers and tensors, which safetensors has no place for.

    @_opcode(b"Q")
    def _persistent_id(self) -> None:
        if self._persistent is None:
            raise ConvertError("the pickle refers to data outside itself")
        self._push(self._persistent(self._pop()))

    @_opcode(b"P")
    def _persistent_text(self) -> None:
        raise ConvertError("the pickle refers to data outside itself by a text, torch never does")
