"""What the report tests report on: a run, a comparison, and names that wish readers ill."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from pipeline_lab.analysis.verdict.verdict import Evidence, Finding, Suggestion
from pipeline_lab.comparison.race_result import read_race
from pipeline_lab.comparison.recorded_runs import RecordedRun, compare_runs
from pipeline_lab.report.content import Subject
from pipeline_lab.report.formats import find_format
from pipeline_lab.report.subjects.comparison_report import ComparisonReport
from pipeline_lab.report.subjects.race_report import RaceReport
from pipeline_lab.report.subjects.run_report import RunReport
from pipeline_lab.runs.store import RunStore
from tests.support import results
from tests.support.races import PlantedArm, make_race
from tests.support.recorded import recorded

RIGHT_TO_LEFT = "\u202eevil\u202c שלום مرحبا"
HOSTILE = f"</script><script>window.broken=1</script><img src=x onerror=window.broken=1>\"'`|{RIGHT_TO_LEFT}\x00\ud800"


@cache
def rendered(format_name: str, make: Callable[[], Subject]) -> bytes:
    """Return the one file that a format makes of what a function of this module returns; each is drawn once."""
    return find_format(format_name).render(make())


def run_report(**changes: object) -> RunReport:
    return RunReport(recorded(**changes))


def comparison_report(candidates: int = 1) -> ComparisonReport:
    runs = [recorded("optimised", 0.6 + 0.05 * number, name=f"candidate {number}") for number in range(candidates)]
    return ComparisonReport(compare_runs(recorded(), *runs))


def race_report() -> RaceReport:
    """Report a race of twelve rounds: 20 ms against 10 ms per step, the faster arm with a worse loss."""
    generator = np.random.default_rng(0)
    step_ms = [20 * np.exp(generator.normal(0, 0.02, 12)), 10 * np.exp(generator.normal(0, 0.02, 12))]
    with tempfile.TemporaryDirectory() as folder:
        arms = [PlantedArm([float(x) for x in each], loss) for each, loss in zip(step_ms, (1.0, 1.5), strict=True)]
        made = make_race(RunStore(Path(folder)), *arms)
        race = read_race(made)
    return RaceReport(replace(race, id="20260101-120000-words-ab12", created_s=1_767_268_800.0))


def many_report() -> ComparisonReport:
    return comparison_report(19)


def bare_report() -> RunReport:
    return RunReport(RecordedRun("bare", results.bare_diagnosis()))


def hostile_report() -> RunReport:
    return RunReport(hostile_run())


def hostile_run(long: int = 1) -> RecordedRun:
    """Build a run in which every text that somebody else chose is hostile."""
    text = HOSTILE * long
    diagnosis = results.diagnosis()
    sampling = diagnosis.file_sampling
    files = [f"/data/{text}-{number}" for number in range(8)]
    old = sampling.table.column("file").to_pylist()
    timeline = [files[old.index(name)] for name in sampling.timeline.column("file").to_pylist()]
    diagnosis = replace(
        diagnosis,
        file_sampling=replace(
            sampling,
            table=_with_texts(sampling.table, "file", files),
            timeline=_with_texts(sampling.timeline, "file", timeline),
        ),
        verdict=replace(
            diagnosis.verdict,
            sentence=text,
            evidence=(Evidence(text, text),),
            suggestions=(Suggestion(text, text, 10.0),),
        ),
        findings=(Finding("sampling-skew", text, (Evidence(text, text),)),),
    )
    return recorded(
        name=text,
        diagnosis=diagnosis,
        id=text,
        reason=text,
        environment={"host": text, text: text},
        options={"pipeline": {"stages": [{"stage": text, text: text}]}, text: [text]},
        source=f'"""{text}"""\n',
        notes=text,
        tags=(text,),
    )


def _with_texts(table, column: str, texts: list[str]):
    import pyarrow as pa

    safe = [text.encode("utf-8", "replace").decode() for text in texts]
    index = table.schema.get_field_index(column)
    return table.set_column(index, table.schema.field(column), pa.array(safe))
