"""Read what TensorFlow 2.2 to 2.8 derived from a trace at capture time: the step table and the verdict.

Such a log holds `<host>.input_pipeline.pb` and `<host>.overview_page.pb`, which contains the former, often without the
trace itself.
"""

import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import TraceReadError
from pipeline_lab.folders import as_text
from pipeline_lab.trace.legacy.message import (
    CHUNK,
    FIXED64,
    VARINT,
    DamagedMessageError,
    MessageField,
    read_double,
    read_fields,
    read_text,
    signed,
)
from pipeline_lab.trace.legacy.stored_analysis import (
    DerivedProfile,
    StoredStage,
    StoredSteps,
    StoredSummary,
    StoredVerdict,
)
from pipeline_lab.trace.schema import IntArray
from pipeline_lab.units import NS_PER_MS, format_bytes

MAX_STAGES = 10_000
_MAX_MS = 2**53 / NS_PER_MS

# Columns of StoredSteps by field number of PerGenericStepDetails. Field 4, "infeed", is what the first releases wrote
# before they told waiting (11) and sending (12) apart.
_GENERIC_PARTS = {
    2: "total",
    3: "unknown",
    4: "input_wait",
    5: "output",
    6: "device_compute",
    7: "device_to_device",
    8: "host_compute",
    9: "host_prepare",
    10: "compile",
    11: "input_wait",
    12: "host_to_device",
    13: "collective",
}
# The same for PerTpuStepDetails, whose step time is the sum of these parts (tpu_step_details_utils.h).
_TPU_PARTS = {
    3: "input_wait",
    11: "collective",
    12: "collective",
    13: "device_compute",
    14: "unknown",
    15: "output",
    16: "device_compute",
    17: "input_wait",
}
_COLUMNS = tuple(dict.fromkeys(_GENERIC_PARTS.values()))


@dataclass
class _StepTable:
    """The step table while it grows; columns in ms as stored."""

    numbers: "array[int]" = field(default_factory=lambda: array("q"))
    names: list[str] = field(default_factory=list)
    columns: dict[str, "array[float]"] = field(default_factory=lambda: {name: array("d") for name in _COLUMNS})

    def finish(self) -> StoredSteps:
        columns = {f"{name}_ns": _to_ns(values) for name, values in self.columns.items()}
        return StoredSteps(np.array(self.numbers, np.int64), tuple(self.names), **columns)


@dataclass
class MessageReader:
    """One derived file and what has been read of it.

    Attributes:
        data: The file.
        found: Whether any part of an input pipeline analysis was found.
        bottleneck: Words of BottleneckAnalysis or TpuBottleneckAnalysis by field number.
        recommendation, generic: Words of OverviewPageRecommendation and the GenericRecommendation in it.
    """

    data: bytes
    found: bool = False
    table: _StepTable = field(default_factory=_StepTable)
    stages: list[StoredStage] = field(default_factory=list)
    hardware: str = ""
    device_type: str = ""
    device_count: int | None = None
    hosts: list[str] = field(default_factory=list)
    mean_step_ms: float | None = None
    mean_percent: float | None = None
    bottleneck: dict[int, str] = field(default_factory=dict)
    recommendation: dict[int, str] = field(default_factory=dict)
    generic: dict[int, str] = field(default_factory=dict)
    next_step: str = ""
    warnings: list[str] = field(default_factory=list)

    def read(self, kind: str) -> None:
        whole = MessageField(0, CHUNK, 0, 0, len(self.data))
        if kind == "overview_page":
            self._read_page(whole)
        else:
            self._read_analysis(whole)

    def finish(self, path: Path, host: str) -> DerivedProfile:
        words = self.bottleneck
        verdict = StoredVerdict(
            bottleneck=words.get(1) or self.recommendation.get(1, ""),
            input_statement=words.get(2) or self.recommendation.get(2, ""),
            launch_statement=words.get(4) or self.generic.get(2, ""),
            other_statement=words.get(6) or self.generic.get(4, ""),
            next_step=self.next_step,
        )
        mean_step_ns = None if self.mean_step_ms is None else round(self.mean_step_ms * NS_PER_MS)
        return DerivedProfile(
            path=path,
            host=host,
            hardware=self.hardware,
            device_type=self.device_type,
            hosts=tuple(name for name in dict.fromkeys(self.hosts) if name),
            device_count=self.device_count,
            steps=self.table.finish(),
            summary=StoredSummary(mean_step_ns, self.mean_percent),
            verdict=verdict,
            stages=tuple(self.stages),
            warnings=tuple(dict.fromkeys(self.warnings)),
        )

    def _read_page(self, page: MessageField) -> None:
        for part in self._chunks(page):
            if part.number == 2:
                self._read_analysis(part)
            elif part.number == 4:
                self.recommendation = self._texts(part)
                self.generic = self._unpack_texts(part, 6, "GenericRecommendation")
            elif part.number == 6:
                self._read_environment(part)
            elif part.number == 8:
                self._read_diagnostics(part)

    def _read_environment(self, environment: MessageField) -> None:
        for part in self._fields(environment):
            if part.number == 3 and part.wire == CHUNK:
                self.hosts.append(self._texts(part).get(1, ""))
            elif part.number == 4 and part.wire == CHUNK:
                self.device_type = read_text(self.data, part)
            elif part.number == 5 and part.wire == VARINT:
                self.device_count = signed(part.value)

    def _read_analysis(self, analysis: MessageField) -> None:
        for part in self._chunks(analysis):
            self.found |= part.number in (2, 3, 4, 7, 9)
            if part.number == 2:
                self.mean_step_ms = self._average(part)
            elif part.number == 3:
                self.mean_percent = self._average(part)
            elif part.number == 4:
                self._read_step(part)
            elif part.number == 6:
                self._read_stage(part)
            elif part.number == 7:
                self._read_recommendation(part)
            elif part.number == 9:
                self.hardware = read_text(self.data, part)
            elif part.number == 12:
                self._read_diagnostics(part)

    def _read_step(self, packed: MessageField) -> None:
        kind, details = self._open_any(packed)
        if kind == "PerGenericStepDetails":
            self._add_step(details, _GENERIC_PARTS, name_field=14)
        elif kind == "PerTpuStepDetails":
            self._add_step(details, _TPU_PARTS, name_field=None)

    def _add_step(self, details: MessageField, parts: Mapping[int, str], name_field: int | None) -> None:
        number, name = 0, ""
        values = dict.fromkeys(_COLUMNS, 0.0)
        for part in self._fields(details):
            if part.number == 1 and part.wire == VARINT:
                number = signed(part.value)
            elif part.number == name_field and part.wire == CHUNK:
                name = read_text(self.data, part)
            elif part.number in parts and part.wire == FIXED64:
                values[parts[part.number]] += self._milliseconds(part)
        if "total" not in parts.values():
            values["total"] = sum(values.values())
        self.table.numbers.append(number)
        self.table.names.append(name)
        for column, value in values.items():
            self.table.columns[column].append(value)

    def _read_stage(self, stage: MessageField) -> None:
        if len(self.stages) >= MAX_STAGES:
            return
        texts, calls, times = self._texts(stage), 0, {3: 0.0, 5: 0.0}
        for part in self._fields(stage):
            if part.number == 2 and part.wire == VARINT:
                calls = part.value
            elif part.number in times and part.wire == FIXED64:
                times[part.number] = self._milliseconds(part)
        total_ns, self_ns = (round(value * NS_PER_MS) for value in times.values())
        self.stages.append(StoredStage(texts.get(1, ""), calls, total_ns, self_ns, texts.get(7, "")))

    def _read_recommendation(self, recommendation: MessageField) -> None:
        self.next_step = self._texts(recommendation).get(3, "")
        self.bottleneck = self._unpack_texts(recommendation, 2, "BottleneckAnalysis")
        if not self.bottleneck:  # the TPU's words on other things have other numbers
            words = self._unpack_texts(recommendation, 2, "TpuBottleneckAnalysis")
            self.bottleneck = {number: words[number] for number in (1, 2) if number in words}

    def _read_diagnostics(self, diagnostics: MessageField) -> None:
        self.warnings += [read_text(self.data, part) for part in self._chunks(diagnostics) if part.number in (2, 3)]

    def _open_any(self, packed: MessageField) -> tuple[str, MessageField]:
        """Return type, without its package, and value of a google.protobuf.Any."""
        kind, value = "", MessageField(2, CHUNK, 0, packed.end, packed.end)
        for part in self._chunks(packed):
            if part.number == 1:
                kind = read_text(self.data, part).rpartition(".")[2]
            elif part.number == 2:
                value = part
        return kind, value

    def _unpack_texts(self, message: MessageField, number: int, kind: str) -> dict[int, str]:
        """Return the words of the ``kind`` that is packed in field ``number`` of a message."""
        for part in self._chunks(message):
            if part.number == number:
                found, value = self._open_any(part)
                if found == kind:
                    return self._texts(value)
        return {}

    def _texts(self, message: MessageField) -> dict[int, str]:
        """Return the chunks of a message as text by field number; of a repeated field the last."""
        return {part.number: read_text(self.data, part) for part in self._chunks(message)}

    def _average(self, summary: MessageField) -> float | None:
        """Return the average of a StepSummary; a field left out means 0, as everywhere in proto3."""
        average = 0.0
        for part in self._fields(summary):
            if part.number == 1 and part.wire == FIXED64:
                average = read_double(self.data, part)
        return average if math.isfinite(average) else None

    def _milliseconds(self, part: MessageField) -> float:
        """Return a duration in ms.

        Raises:
            DamagedMessageError: It is not a number, negative, or longer than some months.
        """
        value = read_double(self.data, part)
        if not 0 <= value <= _MAX_MS:
            raise DamagedMessageError(part.begin)
        return value

    def _fields(self, message: MessageField) -> Iterator[MessageField]:
        return read_fields(self.data, message.begin, message.end)

    def _chunks(self, message: MessageField) -> Iterator[MessageField]:
        return (part for part in self._fields(message) if part.wire == CHUNK)


def _to_ns(milliseconds: "array[float]") -> IntArray:
    nanoseconds: IntArray = np.rint(np.array(milliseconds, np.float64) * NS_PER_MS).astype(np.int64)
    return nanoseconds


MAX_BYTES = 8_000_000
"""TensorFlow's own derived files are a hundred times smaller."""

_FILE_NAME = re.compile(r"(?:(?P<host>.*)\.)?(?P<kind>input_pipeline|overview_page)\.pb")


def is_derived(name: str) -> bool:
    """Say whether a file of this name holds a step table of TensorFlow 2.2 to 2.8."""
    return _FILE_NAME.fullmatch(name) is not None


def read_session(paths: Sequence[Path]) -> tuple[DerivedProfile, ...]:
    """Read the derived files of one session folder, one profile per host in the order of their names.

    Of a host's two files the overview page says more; the other one is read when that one is damaged. Paths that are
    no derived files are left out.

    Raises:
        TraceReadError: A host's files are damaged, all of them, or no path is a derived file.
    """
    by_host: dict[str, list[Path]] = {}
    for path in sorted(paths, key=lambda path: path.name, reverse=True):
        match = _FILE_NAME.fullmatch(path.name)
        if match:
            by_host.setdefault(match["host"] or "", []).append(path)
    if not by_host:
        raise TraceReadError("There is no *.input_pipeline.pb and no *.overview_page.pb in this log.")
    return tuple(_read_first(found) for _, found in sorted(by_host.items()))


def read_derived(path: Path, data: bytes | None = None) -> DerivedProfile:
    """Read one derived file; ``data`` is its content if the file on disk is compressed.

    Raises:
        TraceReadError: It is empty, damaged, too large, or no such file.
    """
    match = _FILE_NAME.fullmatch(path.name)
    if not match:
        raise TraceReadError(
            f"{path.name} is not a derived profile; those are named *.input_pipeline.pb or *.overview_page.pb."
        )
    content = _read_bytes(path) if data is None else data
    if not content:
        raise TraceReadError(f"{path.name} is empty; record the profile again.")

    reader = MessageReader(content)
    try:
        reader.read(match["kind"])
    except DamagedMessageError as error:
        raise TraceReadError(
            f"{path.name} is damaged at byte {error.position} of {len(content)}; record the profile again."
        ) from None
    if not reader.found:
        raise TraceReadError(f"{path.name} holds no input pipeline analysis, which TensorFlow 2.2 to 2.8 writes there.")
    return reader.finish(path, as_text(match["host"] or ""))


def _read_first(paths: Sequence[Path]) -> DerivedProfile:
    """Read the first of a host's files that can be read; if none can be, raise the first one's error."""
    errors = []
    for path in paths:
        try:
            return read_derived(path)
        except TraceReadError as error:
            errors.append(error)
    raise errors[0]


def _read_bytes(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise TraceReadError(
                f"{path.name} holds {format_bytes(size)}; a derived profile is smaller than {format_bytes(MAX_BYTES)}."
            )
        return path.read_bytes()
    except OSError as error:
        raise TraceReadError(f"{path.name} cannot be read: {error.strerror}.") from None
