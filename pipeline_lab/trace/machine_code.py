"""Put the machine code of an object file into memory, ready to be called.

LLVM does that too, but its library takes 50 MB and most of a tenth of a second to load. What compiled loops are made of is
simple: an ELF file for x86-64, code and constants whose gaps are filled with addresses, and one or two functions of the C
library. Anything else is left to LLVM. Numbers are those of the System V ABI and its supplement for x86-64.
"""

import ctypes
import mmap
import os
import struct
import sys
from typing import Any, NamedTuple

_HEADER, _GAP = struct.Struct("<7s9xHH20xQ10xHH2x"), struct.Struct("<QIIq")
_MAGIC, _RELOCATABLE, _X86_64 = b"\x7fELF\x02\x01\x01", 1, 62
_CONTENT, _SYMBOLS, _GAPS = 1, 2, 4
"""Kinds of sections: code or constants, the table of what is in them, and the gaps of another one."""
_UNWINDING = 0x70000001
"""Kind of the section that tells how exceptions pass, of which compiled loops raise none."""
_IN_MEMORY = 2
"""Flag of sections that the code needs when it runs."""
_ELSEWHERE, _NOWHERE = 0, 0xFF00
"""In place of a symbol's section: it is in no section of the file; from the second on it is in none at all."""
_ADDRESS = 1
"""What fills a gap of eight bytes: ``R_X86_64_64``."""


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


_SECTION, _SYMBOL = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")

_kept: list[Any] = []
"""Memory that holds code, kept while the process lasts."""


def can_place_code() -> bool:
    """Say whether this is a machine whose object files :func:`place_code` reads."""
    return sys.platform == "linux" and os.uname().machine == "x86_64"


def place_code(code: bytes, entry: str) -> int | None:
    """Put an object file's code into memory.

    Args:
        code: An object file as LLVM writes it; it is trusted to be whole.
        entry: Name of a function in it.

    Returns:
        The function's address; None if only LLVM understands the file, or the system grants no such memory.
    """
    try:
        return _Code(code).place(entry) if can_place_code() else None
    except (struct.error, LookupError, ValueError, OSError, AttributeError):
        return None


class _Code:
    """An object file, and the memory that its sections come to lie in."""

    def __init__(self, code: bytes) -> None:
        magic, kind, machine, table, size, count = _HEADER.unpack_from(code)
        if (magic, kind, machine, size) != (_MAGIC, _RELOCATABLE, _X86_64, _SECTION.size):
            raise ValueError("no object file for this processor")
        self._code = code
        self._sections = [_Section._make(_SECTION.unpack_from(code, table + row * size)) for row in range(count)]
        (self._table,) = (each for each in self._sections if each.kind == _SYMBOLS)
        self._symbols = [_Symbol._make(each) for each in _SYMBOL.iter_unpack(self._content(self._table))]
        self._places: dict[int, int] = {}
        end = 0
        for row, section in enumerate(self._sections):
            if section.kind == _CONTENT and section.flags & _IN_MEMORY:
                self._places[row] = end + -end % max(section.alignment, 1)
                end = self._places[row] + section.size
            elif section.flags & _IN_MEMORY and section.kind != _UNWINDING:
                raise ValueError(f"a section of kind {section.kind}")
        self._memory = mmap.mmap(-1, end, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._first = ctypes.c_char.from_buffer(self._memory)
        self._base, self._library = ctypes.addressof(self._first), ctypes.CDLL(None)

    def place(self, entry: str) -> int:
        for row, place in self._places.items():
            section = self._sections[row]
            self._memory[place : place + section.size] = self._content(section)
        for section in self._sections:
            if section.kind == _GAPS and section.info in self._places:
                self._fill(section)
        (found,) = (each for each in self._symbols if self._name(each) == entry)
        address = self._address(found)
        length = ctypes.c_size_t(len(self._memory))
        if self._library.mprotect(ctypes.c_void_p(self._base), length, mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError("the system grants no memory for code")
        _kept.append((self._memory, self._first))
        return address

    def _fill(self, gaps: _Section) -> None:
        for offset, filling, symbol, added in _GAP.iter_unpack(self._content(gaps)):
            if filling != _ADDRESS:
                raise ValueError(f"a gap of kind {filling}")
            address = self._address(self._symbols[symbol]) + added
            struct.pack_into("<q", self._memory, self._places[gaps.info] + offset, address)

    def _address(self, symbol: _Symbol) -> int:
        if symbol.section == _ELSEWHERE:
            return ctypes.cast(getattr(self._library, self._name(symbol)), ctypes.c_void_p).value or 0
        if symbol.section >= _NOWHERE:
            raise ValueError(f"{self._name(symbol)} has no place")
        return self._base + self._places[symbol.section] + symbol.value

    def _name(self, symbol: _Symbol) -> str:
        start = self._sections[self._table.link].offset + symbol.name
        return self._code[start : self._code.index(b"\0", start)].decode()

    def _content(self, section: _Section) -> bytes:
        return self._code[section.offset : section.offset + section.size]
