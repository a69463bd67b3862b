"""The framing of TFRecord files, read without TensorFlow.

A record is ``length: uint64, crc of length: uint32, data, crc of data: uint32``, little-endian; the checksums are
CRC-32C, rotated and shifted by a constant (TensorFlow's ``lib/io/record_writer.h``).
"""

import itertools
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

from pipeline_lab.errors import DataError

HEADER = struct.Struct("<QI")
FOOTER_BYTES = 4
FRAME_BYTES = HEADER.size + FOOTER_BYTES
_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_GZIP_MAGIC = b"\x1f\x8b"


def count_records(path: Path) -> int:
    """Count the records of a file by walking from header to header; the data in between is not read.

    Raises:
        DataError: The file is missing, or damaged; the text names the record.
    """
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) == 0:
                return 0
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return _count(path, content)
    except OSError as error:
        raise DataError(f"Cannot read the data file {path}: {error.strerror}.") from None


def read_records(path: Path) -> Iterator[bytes]:
    """Yield the records of a file without checking the checksums of the data.

    Raises:
        DataError: The file is missing, or damaged; the text names the record.
    """
    try:
        with path.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(0)
            for record in itertools.count():
                header = file.read(HEADER.size)
                if not header:
                    return
                if len(header) < HEADER.size:
                    raise DataError(_ending(path, record))
                length, crc = HEADER.unpack(header)
                if masked_crc(header[:8]) != crc:
                    raise DataError(_damage(path, record, header))
                if length + FOOTER_BYTES > end - file.tell():
                    raise DataError(_ending(path, record))
                yield file.read(length + FOOTER_BYTES)[:length]
    except OSError as error:
        raise DataError(f"Cannot read the data file {path}: {error.strerror}.") from None


def masked_crc(data: bytes) -> int:
    """Return the checksum that a TFRecord stores for these bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def _count(path: Path, content: mmap.mmap) -> int:
    position, records = 0, 0
    while position < len(content):
        if position + HEADER.size > len(content):
            raise DataError(_ending(path, records))
        length, crc = HEADER.unpack_from(content, position)
        if masked_crc(content[position : position + 8]) != crc:
            raise DataError(_damage(path, records, content))
        position += FRAME_BYTES + length
        if position > len(content):
            raise DataError(_ending(path, records))
        records += 1
    return records


def _ending(path: Path, record: int) -> str:
    return f"{path} ends in the middle of record {record}; it is incomplete."


def _damage(path: Path, record: int, content: mmap.mmap | bytes) -> str:
    if content[:2] == _GZIP_MAGIC:
        return f"{path} is compressed; decompress it first, with `gunzip` for instance."
    if record == 0:
        return f"{path} is not a TFRecord file, or its first record is damaged; check the pattern."
    return f"{path} is damaged at record {record}; write it again, or leave it out of the pattern."


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


_TABLE = _crc_table()
