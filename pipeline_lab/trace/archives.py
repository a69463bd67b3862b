"""Unpack what users bring: gzip (cut short, damaged, nested), zip and tar, none of it trusted.

A zip whose list of entries is missing, for example because a download was cut off, is read entry by entry from the
start. Each entry follows its own header, which names it. A deflated entry marks its own end; for a stored entry the header
gives the length, unless the zip was written to a pipe.
"""

import gzip
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceReadError
from pipeline_lab.trace.file_memory import map_file, scratch_file
from pipeline_lab.trace.wire import ByteArray
from pipeline_lab.units import format_bytes

HEADER_MAGIC = b"PK\x03\x04"
_HEADER = struct.Struct("<4s2xHH8xLLHH")
_ENCRYPTED, _LENGTH_FOLLOWS = 0x1, 0x8
_STORED, _DEFLATED = 0, 8
_LARGE = 0xFFFFFFFF
"""Marks a length that is stored elsewhere, past 4 GiB."""
_DESCRIPTOR_BYTES = 24
"""The most bytes between an entry and the next header."""
_BLOCK = 1 << 18

EntryBytes = Iterator[bytes]


def entries(file: BinaryIO) -> Iterator[tuple[str, EntryBytes]]:
    """Yield name and content of each readable entry; consume a content before the next entry.

    Raises:
        zlib.error: An entry is damaged.
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


def _inflate(file: BinaryIO, end: list[int]) -> EntryBytes:
    """Yield the plain bytes of a deflated entry, and note where it ends."""
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    packed = b""
    while not stream.eof:
        packed = stream.unconsumed_tail or file.read(_BLOCK)
        if not packed:
            break
        yield stream.decompress(packed, _BLOCK)
    end[0] = file.tell() - len(stream.unused_data)


def _copy(file: IO[bytes], length: int, end: list[int]) -> EntryBytes:
    left = length
    while left and (block := file.read(min(left, _BLOCK))):
        left -= len(block)
        yield block
    end[0] = file.tell()


def _next_header(file: BinaryIO, at: int) -> int:
    """Return where the next header begins: here, or after the lengths of the entry; else a position without one."""
    file.seek(at)
    found = file.read(_DESCRIPTOR_BYTES + len(HEADER_MAGIC)).find(HEADER_MAGIC)
    return at + max(found, 0)


GZIP_MAGIC, ZIP_MAGIC = b"\x1f\x8b", HEADER_MAGIC
TAR_MAGIC, TAR_MAGIC_AT = b"ustar", 257
MAX_LAYERS = 3
"""How many layers of compression a file may have."""
MAX_ENTRIES = 20_000
MAX_DIRECTORY_BYTES = 8 << 20
SPARE_BYTES = 64 << 20
MAX_RATIO = 200
"""A trace shrinks by a factor of 10 to 40; what grows more than this, and past `SPARE_BYTES`, is not a trace."""
BLOCK = 1 << 18
# What the standard library raises on damaged, encrypted or unknown archives; OSError is handled separately.
UNPACKING_ERRORS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError, struct.error)


@dataclass(frozen=True, eq=False)
class Expanded:
    """A file with its gzip layers taken off.

    Attributes:
        data: Its bytes, mapped.
        cut: Why they are incomplete, as a sentence, or empty.
    """

    data: ByteArray
    cut: str


def expand(path: Path) -> Expanded:
    """Map a file, decompressing it first if it is gzip; the result is on disk, not in memory.

    Raises:
        TraceReadError: It cannot be read, is empty, or unpacks to too many bytes.
    """
    try:
        with path.open("rb") as file:
            return _expand(file, path.name, Allowance(path.name, path.stat().st_size), MAX_LAYERS)
    except OSError as error:
        raise TraceReadError(f"{path} cannot be read: {error.strerror or error}.") from error


class Allowance:
    """Counts down the bytes that a packed file may grow to."""

    def __init__(self, name: str, packed_bytes: int) -> None:
        self._name = name
        self._left = SPARE_BYTES + MAX_RATIO * packed_bytes

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise TraceReadError(
                f"{self._name} unpacks to more than {MAX_RATIO} times its size, which no trace does; it is refused."
            )


def _expand(file: BinaryIO, name: str, allowance: Allowance, layers: int) -> Expanded:
    magic = file.read(2)
    file.seek(0)
    if magic != GZIP_MAGIC:
        return Expanded(map_file(file, name), "")
    if not layers:
        raise TraceReadError(f"{name} is compressed more than {MAX_LAYERS} times over; unpack it first.")
    with scratch_file() as plain:
        cut = _gunzip(file, plain, allowance)
        if not plain.tell():
            raise TraceReadError(f"{name} is compressed, and nothing in it can be unpacked; copy it again.")
        plain.seek(0)
        inner = _expand(plain, name, allowance, layers - 1)
    return Expanded(inner.data, cut or inner.cut)


def _gunzip(packed: BinaryIO, plain: IO[bytes], allowance: Allowance) -> str:
    """Decompress as far as possible; return why it stopped early, or nothing."""
    try:
        with gzip.GzipFile(fileobj=packed) as stream:
            while block := stream.read1(BLOCK):
                allowance.take(len(block))
                plain.write(block)
    except EOFError:
        return f"The compressed file is cut off after {format_bytes(packed.tell())}."
    except (zlib.error, gzip.BadGzipFile) as error:
        return f"The compressed file is damaged: {error}."
    return ""


def is_archive(path: Path) -> bool:
    """Say whether a file is a zip or a tar file; the tar may be compressed."""
    needed = TAR_MAGIC_AT + len(TAR_MAGIC)
    with suppress(OSError), path.open("rb") as file:
        head = file.read(needed)
        if head[:2] != GZIP_MAGIC:
            return head.startswith(ZIP_MAGIC) or head.endswith(TAR_MAGIC)
        inner = zlib.decompressobj(31)
        with suppress(zlib.error):
            return inner.decompress(head + file.read(BLOCK), needed).endswith(TAR_MAGIC)
    return False


def unpack(path: Path, folder: Path) -> str:
    """Unpack an archive into ``folder``.

    Returns:
        Why only a part could be unpacked, as a sentence, or nothing.

    Raises:
        TraceReadError: It is damaged from the start, or does what no archive of traces does: names that lead out of
            the folder, links, more than `MAX_ENTRIES` entries, or too many bytes.
    """
    allowance = Allowance(path.name, path.stat().st_size)
    try:
        with path.open("rb") as file:
            if file.read(len(ZIP_MAGIC)) == ZIP_MAGIC:
                return _unpack_zip(file, path.name, folder, allowance)
            file.seek(0)
            return _unpack_tar(file, path.name, folder, allowance)
    except UNPACKING_ERRORS as error:
        raise TraceReadError(f"{path.name} cannot be unpacked ({error}); create the archive again.") from error
    except OSError as error:
        raise TraceReadError(f"{path.name} cannot be unpacked: {error.strerror or error}.") from error


def _unpack_zip(file: BinaryIO, name: str, folder: Path, allowance: Allowance) -> str:
    cut = ""
    if _zip_directory_bytes(file) > MAX_DIRECTORY_BYTES:
        raise _too_many(name)
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile:
        return _salvage_zip(file, name, folder, allowance)
    with archive:
        entries = archive.infolist()
        if len(entries) > MAX_ENTRIES:
            raise _too_many(name)
        for entry in entries:
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise _is_link(name, entry.filename)
            if entry.compress_type not in (
                _STORED,
                _DEFLATED,
            ):  # bzip2 and LZMA unpack a block into any amount of memory
                raise TraceReadError(
                    f"{name} is packed with a method other than deflate ({entry.filename[:80]!r}); pack it again as a plain zip."
                )
            if not entry.filename:  # Python's own messages fail on such an entry
                raise TraceReadError(f"{name} holds an entry without a name; pack it again.")
            target = _target(folder, entry.filename, name)
            if not entry.filename.endswith("/"):
                try:
                    with archive.open(entry) as source:
                        _copy_entry(source, target, allowance)
                except UNPACKING_ERRORS as error:
                    cut = cut or f"{entry.filename[:200]} in {name} is damaged: {error}."
    return _unless_nothing(cut, name, folder)


def _salvage_zip(file: BinaryIO, name: str, folder: Path, allowance: Allowance) -> str:
    """Unpack the entries before the point where a zip was cut off."""
    cut = f"{name} is cut off: its list of entries is missing, and its last entry may be incomplete."
    try:
        for count, (entry, content) in enumerate(entries(file)):
            if count >= MAX_ENTRIES:
                raise _too_many(name)
            target = _target(folder, entry, name)
            if not entry.endswith("/"):
                _write(content, target, allowance)
    except zlib.error as error:
        cut = f"{name} is damaged, and its list of entries is missing: {error}."
    return _unless_nothing(cut, name, folder)


def _unless_nothing(cut: str, name: str, folder: Path) -> str:
    """Return why only a part was unpacked, unless nothing was."""
    if cut and not any(folder.iterdir()):
        raise TraceReadError(f"{name} is damaged, and nothing in it can be unpacked; copy it again.")
    return cut


def _zip_directory_bytes(file: BinaryIO) -> int:
    """Return how long the directory of a zip file claims to be, so that a hostile one is not even loaded."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - (1 << 16) - 100))
    tail = file.read()
    file.seek(0)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + 22 > len(tail):
        return 0
    (length,) = struct.unpack_from("<L", tail, at + 12)
    zip64 = tail.rfind(b"PK\x06\x06", 0, at)
    if zip64 >= 0 and zip64 + 56 <= len(tail):
        length = max(int(length) % 0xFFFFFFFF, struct.unpack_from("<Q", tail, zip64 + 40)[0])
    return int(length)


def _unpack_tar(file: BinaryIO, name: str, folder: Path, allowance: Allowance) -> str:
    with scratch_file() as plain:
        magic = file.read(2)
        file.seek(0)
        cut = _gunzip(file, plain, allowance) if magic == GZIP_MAGIC else ""
        plain.seek(0)
        source = plain if magic == GZIP_MAGIC else file
        try:
            with tarfile.open(fileobj=source, mode="r:") as archive:
                for count, entry in enumerate(archive):
                    if count >= MAX_ENTRIES:
                        raise _too_many(name)
                    _unpack_entry(archive, source, entry, name, folder, allowance)
        except tarfile.TarError as error:
            cut = cut or f"{name} is damaged: {error}."
    return _unless_nothing(cut, name, folder)


def _unpack_entry(
    archive: tarfile.TarFile, file: IO[bytes], entry: tarfile.TarInfo, name: str, folder: Path, allowance: Allowance
) -> None:
    if entry.issym() or entry.islnk():
        raise _is_link(name, entry.name)
    target = _target(folder, entry.name, name)
    if entry.isreg() and not entry.issparse():  # of a cut entry tarfile would give nothing
        file.seek(entry.offset_data)
        _write(_copy(file, entry.size, [0]), target, allowance)
    elif (content := archive.extractfile(entry) if entry.isreg() else None) is not None:
        _copy_entry(content, target, allowance)


def _target(folder: Path, entry: str, archive: str) -> Path:
    parts = PurePosixPath(entry.replace("\\", "/")).parts
    if entry.startswith(("/", "\\")) or ".." in parts or ":" in entry.split("/")[0] or "\0" in entry:
        raise TraceReadError(f"{archive} names a file outside its own folder ({entry[:80]!r}); it is refused.")
    return folder.joinpath(*parts)


def _copy_entry(source: IO[bytes], target: Path, allowance: Allowance) -> None:
    _write(iter(lambda: source.read(BLOCK), b""), target, allowance)


def _write(blocks: Iterator[bytes], target: Path, allowance: Allowance) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as out:
        for block in blocks:
            allowance.take(len(block))
            out.write(block)


def _is_link(archive: str, entry: str) -> TraceReadError:
    return TraceReadError(
        f"{archive} contains a link ({entry[:80]!r}), which may lead anywhere; pack regular files only."
    )


def _too_many(archive: str) -> TraceReadError:
    return TraceReadError(f"{archive} holds more than {MAX_ENTRIES:,} entries; pack only the log directory.")
