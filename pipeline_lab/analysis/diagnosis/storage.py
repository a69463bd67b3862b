"""Write results to a folder and map them back: one JSON document, and Arrow files for the tables.

Results are frozen dataclasses of plain values, enums and tables. The document keeps their structure and names the
table files; readers map those, so a saved diagnosis opens in milliseconds whatever its size. Which classes there are
follows from the types of the fields of the outermost one.

A document without tables is read without Arrow.
"""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline_lab.analysis.diagnosis.table_files import TableFiles

Result = TypeVar("Result")
Kinds = Mapping[str, type[Any]]


def write_result(result: Any, folder: Path, files: "TableFiles | None" = None) -> Any:
    """Write the tables of a result into a folder and return the rest as a JSON value that names their files.

    Args:
        result: What is written.
        folder: Empty of tables.
        files: Wrote those of the result before it into this folder; some of their rows may be the same.
    """
    return _Writer(folder, files).encode(result, "result")


def read_result(value: Any, folder: Path, kind: type[Result], kinds: Kinds | None = None) -> Result:
    """Build a result from its JSON value; its tables stay on the disk and are mapped.

    Args:
        value: What :func:`write_result` returned.
        folder: Where its tables lie.
        kind: Its class.
        kinds: The classes in it by their names; :func:`find_kinds` of its class if None.

    Raises:
        ValueError: The value or a table is damaged, names something that does not exist, or is of another kind.
        OSError: A table is missing.
    """
    try:
        found = _decode(value, folder, find_kinds(kind) if kinds is None else kinds)  # type: ignore[arg-type]  # hashable
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"damaged: {error}") from None
    if not isinstance(found, kind):
        raise ValueError(f"not a {kind.__name__}")
    return found


@cache
def find_kinds(kind: type[Any]) -> Kinds:
    """Return every dataclass and enum that a value of a type may hold, by its name.

    Raises:
        TypeError: Two of them have the same name, so that a document would not tell which is meant.
    """
    found: dict[str, type[Any]] = {}
    for one in _reachable(kind, set()):
        if found.setdefault(one.__name__, one) is not one:
            raise TypeError(
                f"There are two classes {one.__name__}: in {one.__module__}, {found[one.__name__].__module__}."
            )
    return found


def _reachable(kind: Any, seen: set[Any]) -> Iterator[type[Any]]:
    for part in get_args(kind):
        yield from _reachable(part, seen)
    if isinstance(kind, type) and kind not in seen and (is_dataclass(kind) or issubclass(kind, StrEnum)):
        seen.add(kind)
        yield kind
        for inner in get_type_hints(kind).values() if is_dataclass(kind) else ():
            yield from _reachable(inner, seen)


_PLAIN = frozenset({type(None), bool, int, float, str})


class _Writer:
    def __init__(self, folder: Path, files: "TableFiles | None") -> None:
        import pyarrow as pa

        from pipeline_lab.analysis.diagnosis.table_files import TableFiles

        self._pa = pa
        self._files = files or TableFiles(folder)
        self._written: list[tuple[pa.Table, list[str]]] = []

    def encode(self, value: Any, name: str) -> Any:
        if type(value) in _PLAIN:
            return value
        if isinstance(value, self._pa.Table):
            return {"table": self._write_table(value, name)}
        if isinstance(value, StrEnum):
            return {"enum": type(value).__name__, "value": value.value}
        if is_dataclass(value):
            content = {
                field.name: self.encode(getattr(value, field.name), f"{name}.{field.name}") for field in fields(value)
            }
            return {"class": type(value).__name__, "fields": content}
        if isinstance(value, dict):
            pairs = enumerate(value.items())
            return {
                "pairs": [
                    [self.encode(key, name), self.encode(inner, f"{name}.{index}")] for index, (key, inner) in pairs
                ]
            }
        if isinstance(value, tuple):
            return [self.encode(inner, f"{name}.{index}") for index, inner in enumerate(value)]
        return value

    def _write_table(self, table: "pa.Table", name: str) -> str | list[str]:
        """Write a table, unless one with the same content was written before, and return the name of its file, or of several."""
        names = next((written for other, written in self._written if table.equals(other)), None)
        if names is None:
            names = self._files.write(table, name)
            self._written.append((table, names))
        return names[0] if len(names) == 1 else names


def _decode(value: Any, folder: Path, kinds: Kinds) -> Any:
    if isinstance(value, list):
        return tuple(_decode(inner, folder, kinds) for inner in value)
    if not isinstance(value, dict):
        return value
    if "table" in value:
        from pipeline_lab.analysis.diagnosis.table_files import read_table

        files = value["table"]
        return read_table(folder, [files] if isinstance(files, str) else files)
    if "enum" in value:
        return kinds[value["enum"]](value["value"])
    if "pairs" in value:
        return {_decode(key, folder, kinds): _decode(inner, folder, kinds) for key, inner in value["pairs"]}
    content = {name: _decode(inner, folder, kinds) for name, inner in value["fields"].items()}
    return kinds[value["class"]](**content)


def write_json(path: Path, document: Any) -> None:
    """Write a document by rename, so that a reader sees the old or the new one, never half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    scratch = Path(name)
    try:
        # names of files may hold what is no text: it becomes an escape, which reads back as what it was
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(document, ensure_ascii=False))  # several times as fast as writing it piece by piece
        scratch.chmod(0o644)
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
