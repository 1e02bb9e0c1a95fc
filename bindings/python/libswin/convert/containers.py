# SPDX-License-Identifier: MIT
"""The files that frameworks put weights in: torch's zip archive, torch's older stream of pickles, and plain pickles.

    zip archive   <any name>/data.pkl     one pickle; its persistent ids name the entries <any name>/data/<key>
                  <any name>/byteorder    "little" or "big"; absent in older files, which are little-endian
    stream        five pickles            magic number, protocol 1001, byte order, the object, the storages' keys
                  then for every key      int64 number of elements, elements
    plain pickle                          arrays and storages lie in the pickle itself
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from typing import Any

from ..errors import ConvertError
from .names import BYTES_PER_STEP, Name
from .pickles import Machine, Steps
from .source import Cursor, Source
from .tensors import ITEM_SIZE, OTHER_STORAGES, Storage, shown

_MAGIC = 0x1950a86a20f9469cfc6c
_STREAM_PROTOCOL = 1001
_STORAGE_DEPTH = 2     # a storage in a plain pickle is a stream of its own
_MAX_NUMBER = 1 << 47  # of elements

_OTHER_FORMATS = (
    (0, b"version https://git-lfs", "is a Git LFS pointer, not the file itself: fetch it with `git lfs pull`"),
    (0, b"<", "is a web page or XML, not a checkpoint: was the download redirected?"),
    (0, b"\x89PNG\r\n", "is a PNG picture, not a checkpoint: swin-dump, or python3 -m libswin dump, makes maps of it"),
    (0, b"\xff\xd8\xff", "is a JPEG picture, not a checkpoint: python3 -m libswin dump makes maps of it"),
    (0, b"\x89HDF\r\n", "is an HDF5 file (Keras?), not a PyTorch or Paddle checkpoint"),
    (0, b"\x93NUMPY", "is a single numpy array, not a checkpoint"),
    (0, b"GGUF", "is a GGUF file, not a PyTorch or Paddle checkpoint"),
    (0, b"\x1f\x8b", "is compressed by gzip: unpack it first"),
    (257, b"ustar", "is a tar archive: unpack it first (if PyTorch before 0.2 wrote it, save it with a newer one)"),
)

# How pickles of containers begin, and that of the older streams' magic number: with the protocol, or, before there was
# one, with a container, the class of one, or an integer.
_PICKLE = re.compile(rb"\x80[\0-\5]?|[(})\]]|L[0-9]|c[\w.]+\n[\w.]+\n")


class FileLoader:
    """Loads what one file holds; `nested` serves the streams inside its pickles."""

    def __init__(self, source: Source, depth: int = 0, steps: Steps | None = None) -> None:
        self._source = source
        self._depth = depth
        self._steps = steps or Steps()

    def spend(self, steps: int) -> None:
        """Counts work; the pickles inside this file's pickles are paid out of the same purse."""
        self._steps.spend(steps)

    def nested(self, source: Source) -> Any:
        if self._depth + 1 >= _STORAGE_DEPTH:
            raise ConvertError("a saved storage contains another saved storage")
        return FileLoader(source, self._depth + 1, self._steps).load()

    def load(self) -> Any:
        """The object in the file, of containers, numbers, text, `Tensor`, `Array`, `Storage` and `Opaque`."""
        head = self._source.read_at(0, min(self._source.size, 512))
        if head[:2] == b"PK":
            return _Archive(self._source, self).load()
        if len(head) > 9 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < self._source.size:
            raise ConvertError("is a safetensors file already: nothing to convert")
        for offset, mark, message in _OTHER_FORMATS:
            if head[offset:offset + len(mark)] == mark:
                raise ConvertError(message)
        if not head:
            raise ConvertError("is empty")
        if not _PICKLE.match(head):
            raise ConvertError(f"is no PyTorch, pickle or Paddle file: it begins with {_beginning(head)}")
        cursor = Cursor(self._source)
        found = Machine(cursor, self).run()
        if type(found) is int and found == _MAGIC:
            return _Stream(cursor, self).load()
        return found


def _beginning(head: bytes) -> str:
    line = head[:24].split(b"\n")[0].strip()
    text = line.decode("ascii", "replace")
    return repr(text) if line and text.isprintable() else f"the bytes {head[:8].hex(' ')}"


def _storage_id(pid: Any) -> tuple[Name, str, int, Any]:
    """Checks a persistent id: ("storage", class, key, place, number of elements[, view])."""
    if type(pid) is not tuple or len(pid) not in (5, 6) or pid[0] != "storage" or type(pid[1]) is not Name:
        raise ConvertError("the pickle refers to something that is no storage")
    cls, storage_key, count = pid[1], pid[2], pid[4]
    if not isinstance(storage_key, (str, int)) or type(count) is not int or not 0 <= count < _MAX_NUMBER:
        raise ConvertError(f"a storage has the key {shown(storage_key)} and {shown(count)} elements")
    if not cls.text.startswith("torch.") or not cls.text.endswith("Storage"):
        raise ConvertError(f"a storage is of the class {cls.text[:100]}, not of one of torch's")
    return cls, str(storage_key), count, pid[5] if len(pid) == 6 else None


def _item_size(cls: Name) -> int:
    """Bytes per element of a storage class; 0 where nobody knows."""
    if cls.text == "torch.UntypedStorage":
        return 1
    return ITEM_SIZE.get(cls.value) or OTHER_STORAGES.get(cls.text[len("torch."):], 0)


# ----------------------------------------------------------------------------------------------------------------------

class _Archive:
    def __init__(self, source: Source, loader: FileLoader) -> None:
        self._source = source
        self._loader = loader
        try:
            self._zip = zipfile.ZipFile(source.file())
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
            raise ConvertError(f"is a damaged or truncated zip archive: {error}") from None
        self._prefix = ""
        self._swapped = False
        self._entries: dict[str, _Entry] = {}

    def load(self) -> Any:
        listed = self._zip.namelist()
        self._loader.spend(len(listed))
        pickles = [name for name in listed if name == "data.pkl" or name.endswith("/data.pkl") and name.count("/") == 1]
        if len(pickles) != 1:
            raise ConvertError(f"is a zip archive with {len(pickles)} data.pkl, not one: not written by torch.save")
        self._prefix = pickles[0][:-len("data.pkl")]
        if any(name.startswith(self._prefix + "code/") for name in listed):
            raise ConvertError("is a TorchScript program: save model.state_dict() of the Python model instead")
        if self._prefix + "byteorder" in listed:
            entry = self._entry("byteorder")
            order = entry.read_at(0, min(entry.size, 16))
            if order not in (b"little", b"big"):
                raise ConvertError(f"has the byte order {order!r}, little or big expected")
            self._swapped = order == b"big"
        program = self._entry("data.pkl")
        self._loader.spend(program.size // BYTES_PER_STEP)
        program.check()
        return Machine(Cursor(program.bytes), self._loader, self._persistent).run()

    def _entry(self, name: str) -> _Entry:
        name = self._prefix + name
        if name not in self._entries:
            try:
                self._entries[name] = _Entry(self._zip.getinfo(name), self._source)
            except KeyError:
                raise ConvertError(f"has no entry {name[:100]!r}, which a tensor lies in: truncated?") from None
        return self._entries[name]

    def _persistent(self, pid: Any) -> Storage:
        cls, storage_key, count, _ = _storage_id(pid)
        made = Storage(cls.value, count * _item_size(cls), swapped=self._swapped)
        entry = self._entry(f"data/{storage_key}")
        if made.nbytes > entry.size:
            raise ConvertError(f"entry {entry.name!r} has {entry.size} bytes, {made.nbytes} expected for {count} "
                               f"elements of {cls.text}")
        made.data = entry
        return made


class _Entry:
    """A file in the archive, which torch stores as it is; its checksum is compared before the first read."""

    _CHUNK = 1 << 20

    def __init__(self, info: zipfile.ZipInfo, source: Source) -> None:
        self.name = info.filename[:100]
        self.size = info.file_size
        if info.compress_type != zipfile.ZIP_STORED:
            raise ConvertError(f"entry {self.name!r} is compressed, torch never does: unpack the archive and pack it "
                               "again with `zip -0`")
        # Only the local header knows how long it is itself.
        header = source.read_at(info.header_offset, 30)
        if header[:4] != b"PK\x03\x04" or info.flag_bits & 1:
            raise ConvertError(f"entry {self.name!r} is damaged or encrypted")
        start = info.header_offset + 30 + sum(struct.unpack("<HH", header[26:30]))
        self.bytes = source.part(start, info.file_size)
        # Zero stands for none: torch can be told to spare the time.
        self._unchecked = info.CRC or None

    def read_at(self, first: int, count: int) -> bytes:
        self.check()
        return self.bytes.read_at(first, count)

    def check(self) -> None:
        if self._unchecked is None:
            return
        crc = 0
        for first in range(0, self.size, self._CHUNK):
            crc = zlib.crc32(self.bytes.read_at(first, min(self._CHUNK, self.size - first)), crc)
        if crc != self._unchecked:
            raise ConvertError(f"entry {self.name!r} is damaged: checksum {crc:08x}, {self._unchecked:08x} expected")
        self._unchecked = None


# ----------------------------------------------------------------------------------------------------------------------

class _Stream:
    """What follows the magic number."""

    def __init__(self, cursor: Cursor, loader: FileLoader) -> None:
        self._cursor = cursor
        self._loader = loader
        self._swapped = False
        self._sizes: dict[str, int] = {}
        self._roots: dict[str, list[Storage]] = {}

    def load(self) -> Any:
        protocol = self._pickle()
        if protocol != _STREAM_PROTOCOL:
            raise ConvertError(f"is a torch stream of protocol {shown(protocol)}, {_STREAM_PROTOCOL} expected")
        system = self._pickle()
        self._swapped = type(system) is dict and system.get("little_endian") is False
        found = Machine(self._cursor, self._loader, self._persistent).run()
        keys = self._pickle()
        if type(keys) is not list or not all(type(each) in (str, int) for each in keys):
            raise ConvertError("is a torch stream without a list of its storages")
        for storage_key in map(str, keys):
            if storage_key not in self._sizes:
                raise ConvertError(f"is a torch stream with a storage {storage_key[:40]!r} that nothing refers to")
            (count,) = struct.unpack(">q" if self._swapped else "<q", self._cursor.take(8))
            size = self._sizes[storage_key]
            if not 0 <= count < _MAX_NUMBER:
                raise ConvertError(f"is a torch stream with a storage of {count} elements")
            data = self._cursor.source.part(self._cursor.skip(count * size), count * size)
            for made in self._roots.pop(storage_key, ()):
                if made.first + made.nbytes > count * size:
                    raise ConvertError(f"is a torch stream with a storage of {count * size} bytes where "
                                       f"{made.first + made.nbytes} are used")
                made.data = data
        if self._roots:
            raise ConvertError(f"is a torch stream without the storage {min(self._roots)[:40]!r}")
        return found

    def _pickle(self) -> Any:
        return Machine(self._cursor, self._loader).run()

    def _persistent(self, pid: Any) -> Any:
        if type(pid) is tuple and len(pid) == 4 and pid[0] == "module":
            return pid[1]  # a class with its source text beside it
        cls, storage_key, count, view = _storage_id(pid)
        size = _item_size(cls)
        made = Storage(cls.value, count * size, swapped=self._swapped)
        if size == 0:
            raise ConvertError(f"is a torch stream with a {cls.text[:100]}, whose size is not known")
        if self._sizes.setdefault(storage_key, size) != size:
            raise ConvertError(f"is a torch stream with a storage {storage_key[:40]!r} of two element types")
        if view is not None:
            if type(view) is not tuple or len(view) != 3 or not all(type(n) is int and 0 <= n < _MAX_NUMBER
                                                                    for n in view[1:]):
                raise ConvertError("is a torch stream with a view of a storage that is damaged")
            made.first, made.nbytes = view[1] * size, view[2] * size
        self._roots.setdefault(storage_key, []).append(made)
        return made
