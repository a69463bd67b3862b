"""Read a zip whose list of entries is lost, as when a download was cut off: entry by entry from its beginning.

Each entry stands behind a header of its own, which names it. A deflated one says itself where it ends; of a stored one
the header has the length, unless the zip was written to a pipe.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

HEADER_MAGIC = b"PK\x03\x04"
_HEADER = struct.Struct("<4s2xHH8xLLHH")
_ENCRYPTED, _LENGTH_FOLLOWS = 0x1, 0x8
_STORED, _DEFLATED = 0, 8
_LARGE = 0xFFFFFFFF
"""Stands for a length that lies elsewhere, past 4 GiB."""
_DESCRIPTOR_BYTES = 24
"""The most that may stand between an entry and the next header."""
_BLOCK = 1 << 18

Content = Iterator[bytes]


def entries(file: BinaryIO) -> Iterator[tuple[str, Content]]:
    """Yield name and content of each entry that can be read; a content has to be used up before the next entry.

    Raises:
        zlib.error: A content is damaged.
    """
    at = 0
    while (header := _read_header(file, at)) is not None:
        flags, method, length, name = header
        end = [file.tell()]
        if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED):
            return
        if method == _STORED and (flags & _LENGTH_FOLLOWS or length == _LARGE):
            return
        yield name, _inflate(file, end) if method == _DEFLATED else _copy(file, length, end)
        at = _next_header(file, end[0])


def _read_header(file: BinaryIO, at: int) -> tuple[int, int, int, str] | None:
    file.seek(at)
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size or not head.startswith(HEADER_MAGIC):
        return None
    _, flags, method, length, _, name_bytes, extra_bytes = _HEADER.unpack(head)
    name = file.read(name_bytes)
    file.seek(extra_bytes, 1)
    return (flags, method, length, name.decode("utf-8", "replace")) if len(name) == name_bytes else None


def _inflate(file: BinaryIO, end: list[int]) -> Content:
    """Yield the plain bytes of a deflated entry, and note where it ends."""
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    packed = b""
    while not stream.eof:
        packed = stream.unconsumed_tail or file.read(_BLOCK)
        if not packed:
            break
        yield stream.decompress(packed, _BLOCK)
    end[0] = file.tell() - len(stream.unused_data)


def _copy(file: BinaryIO, length: int, end: list[int]) -> Content:
    left = length
    while left and (block := file.read(min(left, _BLOCK))):
        left -= len(block)
        yield block
    end[0] = file.tell()


def _next_header(file: BinaryIO, at: int) -> int:
    """Return where the next header begins: at once, or behind the lengths of the entry; else a place without one."""
    file.seek(at)
    found = file.read(_DESCRIPTOR_BYTES + len(HEADER_MAGIC)).find(HEADER_MAGIC)
    return at + max(found, 0)
