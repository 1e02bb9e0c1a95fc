# SPDX-License-Identifier: MIT
"""PNG files: {name.outcome: bytes}; the outcome is ok, or a word of the message."""

from __future__ import annotations

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, data: bytes = b"", crc: int | None = None, length: int | None = None) -> bytes:
    return (struct.pack(">I", len(data) if length is None else length) + kind + data +
            struct.pack(">I", zlib.crc32(kind + data) if crc is None else crc))


def ihdr(width: int = 5, height: int = 4, depth: int = 8, colour: int = 2, compression: int = 0, filtering: int = 0,
         interlace: int = 0) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, compression, filtering, interlace))


CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def rows(width: int, height: int, depth: int, colour: int, interlace: int = 0) -> bytes:
    """Unfiltered zeros."""
    bits = depth * CHANNELS[colour]
    if not interlace:
        return (b"\0" + bytes((width * bits + 7) // 8)) * height
    data = b""
    for top, left, down, right in PASSES:
        columns = max(0, (width - left + right - 1) // right)
        if columns:
            data += (b"\0" + bytes((columns * bits + 7) // 8)) * max(0, (height - top + down - 1) // down)
    return data


def image(depth: int = 8, colour: int = 2, interlace: int = 0, width: int = 5, height: int = 4, before: bytes = b"",
          data: bytes | None = None) -> bytes:
    pixels = zlib.compress(rows(width, height, depth, colour, interlace)) if data is None else data
    return (SIGNATURE + ihdr(width, height, depth, colour, interlace=interlace) + before + chunk(b"IDAT", pixels) +
            chunk(b"IEND"))


def _kinds(made: dict[str, bytes]) -> None:
    for colour, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
        for depth in (1, 2, 4, 8, 16):
            for interlace in (0, 1):
                name = f"colour-{colour}-depth-{depth}-interlace-{interlace}"
                palette = chunk(b"PLTE", bytes(range(3 * min(16, 1 << depth)))) if colour == 3 else b""
                made[name + (".ok" if depth in depths else ".broken")] = image(depth, colour, interlace, before=palette)


def _structure(made: dict[str, bytes]) -> None:
    whole = image()
    ends = [len(SIGNATURE)]
    while ends[-1] < len(whole):
        ends.append(ends[-1] + 12 + struct.unpack(">I", whole[ends[-1]:ends[-1] + 4])[0])
    for at, end in enumerate(ends[:-1]):
        made[f"cut-before-chunk-{at}.truncated"] = whole[:end]
        for more in (3, 4, 8, 9):
            if end + more < ends[at + 1]:
                made[f"cut-in-chunk-{at}-at-{more}.truncated"] = whole[:end + more]
    made["cut-in-signature.known"] = whole[:7]
    made["empty.empty"] = b""
    made["signature-only.truncated"] = SIGNATURE
    made["a-jpeg.JPEG"] = b"\xff\xd8\xff\xe0" + bytes(30)
    made["crc-of-ihdr.broken"] = SIGNATURE + chunk(b"IHDR", whole[16:29], crc=1) + whole[33:]
    made["crc-of-idat.broken"] = whole[:-13] + bytes([whole[-13] ^ 1]) + whole[-12:]
    made["no-ihdr.broken"] = SIGNATURE + whole[33:]
    made["ihdr-twice.broken"] = SIGNATURE + ihdr() + ihdr() + whole[33:]
    made["ihdr-short.broken"] = SIGNATURE + chunk(b"IHDR", bytes(12)) + whole[33:]
    made["no-idat.broken"] = SIGNATURE + ihdr() + chunk(b"IEND")
    made["idat-empty.broken"] = image(data=b"")
    made["length-2^31.broken"] = SIGNATURE + ihdr() + chunk(b"IDAT", b"x", length=2**31)
    made["length-max.truncated"] = SIGNATURE + ihdr() + chunk(b"IDAT", b"x", length=2**31 - 1)
    made["critical-unknown.broken"] = SIGNATURE + ihdr() + chunk(b"ABCD") + whole[33:]
    made["palette-missing.broken"] = image(8, 3)
    made["palette-too-long.broken"] = image(2, 3, before=chunk(b"PLTE", bytes(3 * 300)))
    made["palette-of-four-bytes.broken"] = image(8, 3, before=chunk(b"PLTE", bytes(4)))
    made["palette-empty.broken"] = image(8, 3, before=chunk(b"PLTE"))


def _numbers(made: dict[str, bytes]) -> None:
    for name, fields in {"width-0.pixels": {"width": 0}, "height-0.pixels": {"height": 0},
                         "width-2^31.broken": {"width": 2**31}, "depth-3.broken": {"depth": 3},
                         "depth-0.broken": {"depth": 0}, "colour-5.broken": {"colour": 5},
                         "colour-255.broken": {"colour": 255}, "compression-1.broken": {"compression": 1},
                         "filter-9.broken": {"filtering": 9}, "interlace-2.broken": {"interlace": 2}}.items():
        made[name] = SIGNATURE + ihdr(**fields) + image()[33:]


def _data(made: dict[str, bytes]) -> None:
    plain = rows(5, 4, 8, 2)
    packed = zlib.compress(plain)
    made["zlib-header.broken"] = image(data=b"\x00\x00" + packed[2:])
    made["zlib-method.broken"] = image(data=b"\x79\x9c" + packed[2:])
    made["zlib-garbage.broken"] = image(data=packed[:2] + b"\xff" * 20)
    made["zlib-cut.broken"] = image(data=packed[:-8])
    made["zlib-dictionary.broken"] = image(data=b"\x78\xbb" + packed[2:])
    made["filter-5.broken"] = image(data=zlib.compress(b"\5" + plain[1:]))
    made["rows-too-few.broken"] = image(data=zlib.compress(plain[:20]))


def _bombs(made: dict[str, bytes]) -> None:
    for name, width, height in (("square", 16001, 16001), ("wide", 2**31 - 1, 1), ("tall", 1, 2**31 - 1),
                                ("all", 2**31 - 1, 2**31 - 1)):
        made[f"bomb-{name}.limit"] = image(width=width, height=height, data=zlib.compress(bytes(1000)))
    # Text and profiles that unpack to a hundred times their size are passed over.
    text = zlib.compress(bytes(4 << 20), 9)
    made["bomb-in-zTXt.ok"] = image(before=chunk(b"zTXt", b"a\0\0" + text))
    made["bomb-in-iTXt.ok"] = image(before=chunk(b"iTXt", b"a\0\1\0\0\0" + text))
    made["bomb-in-iCCP.ok"] = image(before=chunk(b"iCCP", b"a\0\0" + text))
    made["many-chunks.ok"] = image(before=chunk(b"tEXt", b"a\0b") * 5000)


def cases() -> dict[str, bytes]:
    made: dict[str, bytes] = {}
    for part in (_kinds, _structure, _numbers, _data, _bombs):
        part(made)
    return made
