"""Write results to a folder and map them back: one JSON document, and an Arrow file for each table.

Results are frozen dataclasses of plain values, enums and tables. The document keeps their structure and names the
table files; readers map those, so a saved diagnosis opens in milliseconds whatever its size.
"""

import json
import os
import tempfile
from dataclasses import fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline_lab.analysis.causes import GapCause, VerdictClass
from pipeline_lab.analysis.idle.idle_gaps import DeviceTime, IdleGaps, OperationTime
from pipeline_lab.analysis.input.input_stalls import InputStalls
from pipeline_lab.analysis.input.live_model import LiveModel, StageWork
from pipeline_lab.analysis.machine.allocators import Allocator, Allocators
from pipeline_lab.analysis.machine.gpu_clocks import GpuClocks
from pipeline_lab.analysis.machine.job_load import JobLoad
from pipeline_lab.analysis.machine.process_memory import Memory
from pipeline_lab.analysis.machine.profiler_cost import ProfilerCost
from pipeline_lab.analysis.results import Diagnosis, LaterEpochs, Source
from pipeline_lab.analysis.sampling.evaluation import Evaluation
from pipeline_lab.analysis.sampling.file_sampling import FileSampling, SameSource
from pipeline_lab.analysis.sampling.kept_outputs import KeptOutputs
from pipeline_lab.analysis.sampling.padding import Padding
from pipeline_lab.analysis.sampling.sample_history import LabelMix
from pipeline_lab.analysis.steps.calibration import Calibration
from pipeline_lab.analysis.steps.job_steps import JobSteps
from pipeline_lab.analysis.steps.outlier_steps import OutlierSteps
from pipeline_lab.analysis.steps.recorded_steps import Steps
from pipeline_lab.analysis.steps.retracing import Retraces
from pipeline_lab.analysis.steps.step_breakdown import StepBreakdown
from pipeline_lab.analysis.steps.step_phases import Phase, PhaseTimes, StepPhases
from pipeline_lab.analysis.steps.stragglers import Hosts
from pipeline_lab.analysis.tf_data.tf_data import CriticalPath, Operation, PathShare, Stage, StageOrigin, Tally, TfData
from pipeline_lab.analysis.verdict.verdict import Confidence, Evidence, Finding, Suggestion, Verdict
from pipeline_lab.analysis.xprof.xprof_comparison import CrossCheck, Difference
from pipeline_lab.errors import Unavailable
from pipeline_lab.runs.run_documents import WrittenPipeline, WrittenStage
from pipeline_lab.statistics.mixing import Mixing
from pipeline_lab.trace.schema import Salvage

_CLASSES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Allocator,
        Allocators,
        Calibration,
        CriticalPath,
        CrossCheck,
        DeviceTime,
        Diagnosis,
        Difference,
        Evaluation,
        Evidence,
        FileSampling,
        Finding,
        GpuClocks,
        IdleGaps,
        InputStalls,
        JobLoad,
        JobSteps,
        LabelMix,
        LaterEpochs,
        LiveModel,
        Memory,
        Mixing,
        Operation,
        OperationTime,
        Padding,
        KeptOutputs,
        SameSource,
        PathShare,
        ProfilerCost,
        Salvage,
        Source,
        Stage,
        StageWork,
        StepBreakdown,
        Steps,
        Suggestion,
        Tally,
        TfData,
        Unavailable,
        Hosts,
        OutlierSteps,
        PhaseTimes,
        Retraces,
        StepPhases,
        Verdict,
        WrittenPipeline,
        WrittenStage,
    )
}
_ENUMS: dict[str, type[StrEnum]] = {
    kind.__name__: kind for kind in (Confidence, GapCause, Phase, StageOrigin, VerdictClass)
}


def write_result(result: Any, folder: Path) -> Any:
    """Write the tables of a result into a folder and return the rest as a JSON value that names them."""
    return _Writer(folder).encode(result, "result")


def read_result(value: Any, folder: Path) -> Any:
    """Build a result from its JSON value; its tables stay on the disk and are mapped.

    Raises:
        ValueError: The value or a table is damaged, or names something that does not exist.
        OSError: A table is missing.
    """
    try:
        return _decode(value, folder)
    except (KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise ValueError(f"damaged: {error}") from None


class _Writer:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: list[tuple[pa.Table, str]] = []

    def encode(self, value: Any, name: str) -> Any:
        if isinstance(value, pa.Table):
            return {"table": self._write_table(value, name)}
        if isinstance(value, StrEnum):
            return {"enum": type(value).__name__, "value": value.value}
        if is_dataclass(value):
            content = {
                field.name: self.encode(getattr(value, field.name), f"{name}.{field.name}") for field in fields(value)
            }
            return {"class": type(value).__name__, "fields": content}
        if isinstance(value, dict):
            return {"pairs": [[self.encode(key, name), self.encode(inner, name)] for key, inner in value.items()]}
        if isinstance(value, tuple):
            return [self.encode(inner, f"{name}.{index}") for index, inner in enumerate(value)]
        return value

    def _write_table(self, table: pa.Table, name: str) -> str:
        """Write a table, unless one with the same content was written before, and return the file's name."""
        for other, written in self._written:
            if table.equals(other):
                return written
        path = self._folder / f"{name}.arrow"
        self._written.append((table, path.name))
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        return path.name


def _decode(value: Any, folder: Path) -> Any:
    if isinstance(value, list):
        return tuple(_decode(inner, folder) for inner in value)
    if not isinstance(value, dict):
        return value
    if "table" in value:
        return _map_table(folder / Path(value["table"]).name)
    if "enum" in value:
        return _ENUMS[value["enum"]](value["value"])
    if "pairs" in value:
        return {_decode(key, folder): _decode(inner, folder) for key, inner in value["pairs"]}
    return _CLASSES[value["class"]](**{name: _decode(inner, folder) for name, inner in value["fields"].items()})


def _map_table(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def write_json(path: Path, document: Any) -> None:
    """Write a document by rename, so that a reader sees the old or the new one, never half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    scratch = Path(name)
    try:
        # names of files may hold what is no text: it becomes an escape, which reads back as what it was
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(document, file, ensure_ascii=False)
        scratch.chmod(0o644)
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
