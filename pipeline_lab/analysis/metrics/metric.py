"""What a metric is: a number that people see, with its unit, what it is measured over, and how it is written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any, assert_never

from pipeline_lab.analysis.metrics.metric_readers import Value
from pipeline_lab.analysis.results import Diagnosis, Results
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable
from pipeline_lab.units import NS_PER_MS, format_bytes, format_count, format_duration, format_percent


class Topic(StrEnum):
    """What a number, a chart or a table is about; the parts of a run's page, in their order."""

    STALLS = "Input stalls"
    PIPELINE = "Pipeline"
    GAPS = "Idle gaps"
    SAMPLING = "File sampling"
    MEMORY = "Memory"
    STEPS = "Steps and loss"


class Unit(StrEnum):
    MS = "ms"
    PERCENT = "%"
    BYTES = "bytes"
    PER_SECOND = "examples/s"
    BITS = "bits"
    MHZ = "MHz"
    NONE = ""


class Over(StrEnum):
    """What a number is measured over."""

    JUDGED_STEPS = "the recorded steps; all measured ones where the recorded ones are no fair sample"
    STEPS = "all measured steps; of a log, the recorded ones"
    MEASURED_STEPS = "all measured steps"
    RECORDED_STEPS = "recorded steps"
    WINDOWS = "the windows; the time between two windows is not in it"
    CALIBRATION = "the measured steps and a batch held on the device"
    SAMPLES = "the examples that the job took"
    RUN = "the whole run"

    def words(self, diagnosis: Diagnosis) -> str | None:
        """Say how many steps, or which stretch of time, that was in one run; None where there was none."""
        job, steps = diagnosis.job_steps, diagnosis.steps
        recorded = None if isinstance(steps, Unavailable) else _recorded(steps.count)
        match self:
            case Over.JUDGED_STEPS:
                judged = diagnosis.verdict.step
                if judged is None:
                    return None
                return _recorded(judged.count) if judged.are_recorded else _measured(judged.count)
            case Over.STEPS | Over.MEASURED_STEPS:
                return recorded if isinstance(job, Unavailable) else _measured(job.count)
            case Over.RECORDED_STEPS:
                return recorded
            case Over.WINDOWS:
                return "the whole profile windows"
            case Over.CALIBRATION | Over.SAMPLES | Over.RUN:
                return self.value
            case _:
                assert_never(self)


def say_bases(titles: Mapping[str, Sequence[str]]) -> str:
    """Say over what numbers were measured, such as "Median step and throughput: all 200 measured steps."

    Args:
        titles: Of the numbers, by what they were measured over.
    """
    return " ".join(f"{_list(names)}: {over}." for over, names in titles.items())


def _list(titles: Sequence[str]) -> str:
    """Write titles as the beginning of a sentence."""
    first, *others = [title.lower() for title in titles]
    return " and ".join([", ".join([first, *others[:-1]]), *others[-1:]]).capitalize()


def _measured(count: int) -> str:
    return f"all {format_count(count)} measured steps"


def _recorded(count: int) -> str:
    return "the only recorded step" if count == 1 else f"the {format_count(count)} recorded steps"


@dataclass(frozen=True)
class Metric:
    """One number.

    Attributes:
        key: In JSON and tables of comparisons, ending in its unit.
        title: For people.
        unit: Of the value that :attr:`read` returns.
        topic: Where it stands.
        over: What it is measured over.
        better: ``lower``, ``higher``, or empty where neither is better in itself.
        explanation: What it is, in one sentence.
        origin: Its place in the document of ``analyze --json``; the first part is the result that it is read from. What is
            made of several numbers there says how.
        read: From a diagnosis to its value.
        text: From a diagnosis to the value with what belongs beside it; None leaves it out. Without it, reports do not list the
            number by itself.
        is_compared: Comparisons of runs list it.
        result: The result of a diagnosis that it is read from, where the document calls it otherwise.
    """

    key: str
    title: str
    unit: Unit
    topic: Topic
    over: Over
    better: str
    explanation: str
    origin: str
    read: Callable[[Results], Value] = field(repr=False)
    text: Callable[[Any], str | None] | None = field(default=None, repr=False)
    is_compared: bool = False
    result: str = ""

    @property
    def source(self) -> str:
        """The result of a diagnosis that it is read from."""
        return self.result or self.origin.split(".")[0]

    def write(self, diagnosis: Results) -> str | Unavailable:
        """Return the value of a run as text, or why there is none."""
        value = self.read(diagnosis)
        return value if isinstance(value, Unavailable) else write_value(value, self.unit)


def write_value(value: float, unit: Unit) -> str:
    """Write a value for people."""
    match unit:
        case Unit.MS:
            return format_duration(value * NS_PER_MS) if value else "0 ms"
        case Unit.PERCENT:
            return format_percent(value)
        case Unit.BYTES:
            return format_bytes(value)
        case Unit.PER_SECOND:
            return f"{format_count(value)} {unit}"
        case Unit.MHZ | Unit.BITS | Unit.NONE:
            return format_count(value) if value == round(value) or value >= 100 else f"{value:.3g}"
        case _:
            assert_never(unit)


def write_difference(value: float, unit: Unit) -> str:
    """Write a difference of two values with its sign; shares differ by percentage points."""
    if value == 0:
        return "±0"
    size = f"{abs(value):.3g} points" if unit is Unit.PERCENT else write_value(abs(value), unit)
    return f"{'+' if value > 0 else '−'}{size}"
