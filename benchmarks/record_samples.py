"""Race and record the two sample runs that come with the project: ``python -m benchmarks.record_samples``.

The plain pipeline (preset ``baseline``) and the full one (``optimised``) feed an emulated accelerator, whose step takes twice
as long as the plain pipeline needs for a batch on this machine, in a loop that reads every step's result. They race, then
each is recorded for the samples, kept whole but for what belongs to the machine alone: its host name, folders and process
ids. Takes about five minutes; run it on a machine that does nothing else.

With ``--race`` nothing is recorded; with ``--diagnose`` the recorded samples are only diagnosed again, as after a change of
the analysis.
"""

import argparse
import gzip
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pipeline_lab.advice.advising import advise
from pipeline_lab.analysis.diagnosis.diagnose import diagnose
from pipeline_lab.analysis.diagnosis.saved import bundle
from pipeline_lab.comparison.race_result import Race, read_race
from pipeline_lab.comparison.racing import choose_race
from pipeline_lab.options.presets import find_preset
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions, set_options
from pipeline_lab.report.kept_overview import NAME, keep
from pipeline_lab.runs.launch.launcher import launch, wait
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.run_folder import RunFolder, update_record
from pipeline_lab.runs.run_tables import STEPS, read_table
from pipeline_lab.runs.store import RunStore
from pipeline_lab.units import NS_PER_MS, format_bytes

SAMPLES = Path(__file__).resolve().parents[1] / "profiles" / "samples"
PAGE, MARKS = SAMPLES.parents[1] / "docs" / "emulated-accelerator.md", ("<!-- pair -->", "<!-- /pair -->")
"""The page that shows the table, and what stands around it there."""
PRESETS = ("baseline", "optimised")
BUDGET_BYTES = 5_000_000
HOST = "sample-host"
STEP_OVER_PIPELINE = 2.0
"""Without overlap a step then takes three times the pipeline's time, with it twice: 1.5 times less, as in the classic pair."""
SETTINGS = (
    ("workload.image_size", "96"),
    ("pipeline.augment.crop", "96"),
    ("training.device", "emulated"),
    ("training.read_every_step", "true"),
)
"""Images so large that making a batch takes long beside the call that fetches it (some 0.6 ms), in a loop that reads its losses."""
RECORDED = (
    ("training.steps", "200"),
    ("profiling.steps_per_window", "6"),
    ("profiling.every_steps", "50"),
)
"""Four windows of six steps; the first of each, which begins on an idle device, is left out of the recorded ones."""
SHORT = (("training.steps", "40"), ("training.step_ms", "1"), ("profiling.enabled", "false"))
PAIRS, BLOCK_STEPS = 16, 10
CLASSIC_S, CLASSIC_WAIT_S = (1046.0, 709.0), (25.0, 0.2)
"""Published times of a naive and an optimized pipeline on a GPU, and how long each waited for its input."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record_samples", description=__doc__)
    parser.add_argument("--race", action="store_true", help="race the pair, and record nothing")
    parser.add_argument("--diagnose", action="store_true", help="only diagnose the recorded samples again")
    parser.add_argument("--step-ms", type=float, help="time of a step; measured if not given")
    arguments = parser.parse_args()
    if not arguments.diagnose:
        with tempfile.TemporaryDirectory() as scratch:
            _measure(RunStore(Path(scratch)), arguments.step_ms, records=not arguments.race)
    if arguments.race:
        return 0
    for folder in sorted(SAMPLES.glob("sample-*")):
        diagnosis = diagnose(folder)
        bundle(diagnosis, folder, {NAME: keep(advise(diagnosis), folder)})
    size = sum(file.stat().st_size for file in SAMPLES.rglob("*") if file.is_file())
    print(f"{size / 1e6:.2f} MB in {SAMPLES}")
    if size > BUDGET_BYTES:
        print(f"That is more than {format_bytes(BUDGET_BYTES)}; record fewer or shorter windows.")
        return 1
    return 0


def _measure(store: RunStore, step_ms: float | None, *, records: bool) -> None:
    if step_ms is None:
        plain = _run(store, set_options(find_preset(PRESETS[0]).options, [*SETTINGS, *SHORT]))
        step_ms = float(round(STEP_OVER_PIPELINE * _wait_ms(plain)))
    print(f"A step of the emulated accelerator takes {step_ms:g} ms; load of the machine {os.getloadavg()[0]:.1f}.")
    settings = [*SETTINGS, ("training.step_ms", f"{step_ms:g}")]
    arms = [set_options(find_preset(preset).options, settings) for preset in PRESETS]
    race = read_race(_run(store, choose_race(arms, pairs=PAIRS, block_steps=BLOCK_STEPS)))
    table = write_pair(Pair.of(race, step_ms))
    print(table, *(candidate.sentence for candidate in race.candidates), sep="\n")
    if not records:
        return
    _put_into_page(table)
    for preset, options in zip(PRESETS, arms, strict=True):
        _keep(_run(store, set_options(options, RECORDED)), SAMPLES / f"sample-{preset}")


def _wait_ms(run: RunFolder) -> float:
    """Return how long a pipeline takes for a batch while nothing else happens, the median over all steps."""
    steps = read_table(run.steps, STEPS)
    return float(np.median(steps["wait_ns"].to_numpy()[~steps["warmup"].to_numpy(zero_copy_only=False)])) / NS_PER_MS


def _run(store: RunStore, options: RunOptions | RaceOptions) -> RunFolder:
    folder = launch(store, options)
    status = wait(folder).status
    if status.state is not RunState.DONE:
        raise SystemExit(f"{options.label}: {status.state}: {status.reason}")
    return folder


@dataclass(frozen=True)
class Pair:
    """A plain pipeline and a better one, times in ms per step.

    Attributes:
        step_ms, wait_ms: Of each, as raced.
        compute_ms: A step that never waits.
        ratio, low, high: Of their times with its interval; None where the race does not tell.
    """

    step_ms: tuple[float, float]
    wait_ms: tuple[float, float]
    compute_ms: float
    interval: tuple[float, float, float] | None

    @staticmethod
    def of(race: Race, compute_ms: float) -> "Pair":
        step_ms, wait_ms = [], []
        for arm in race.arms:
            step_ms.append(arm.step_ns / NS_PER_MS)
            wait_ms.append(arm.wait_ns / NS_PER_MS)
        found = race.candidates[0].standing.result
        interval = None if found is None else (1 / found.ratio, 1 / found.high, 1 / found.low)
        return Pair((step_ms[0], step_ms[1]), (wait_ms[0], wait_ms[1]), compute_ms, interval)

    @property
    def saved_ms(self) -> float:
        return self.step_ms[0] - self.step_ms[1]

    @property
    def saved_percent(self) -> float:
        """Share of the time that can be saved: all that the step takes beyond the accelerator's own time."""
        return 100.0 * self.saved_ms / (self.step_ms[0] - self.compute_ms)


def write_pair(pair: Pair) -> str:
    """Write the pair beside the classic one, as a table of Markdown."""
    times, waits, found = pair.step_ms, pair.wait_ms, pair.interval
    interval = "" if found is None else f" ({found[1]:.2f} to {found[2]:.2f})"
    rows = (
        ("", "plain pipeline", "full pipeline", "factor", "published pair"),
        ("---",) * 5,
        (
            "time per step",
            f"{times[0]:.1f} ms",
            f"{times[1]:.1f} ms",
            f"{times[0] / times[1]:.2f}×{interval}",
            f"{CLASSIC_S[0]:g} s → {CLASSIC_S[1]:g} s, {CLASSIC_S[0] / CLASSIC_S[1]:.2f}×",
        ),
        (
            "waiting per step",
            f"{waits[0]:.1f} ms",
            f"{waits[1]:.2g} ms",
            f"{waits[0] / waits[1]:.0f}×",
            f"{CLASSIC_WAIT_S[0]:g} s → {CLASSIC_WAIT_S[1]:g} s, {CLASSIC_WAIT_S[0] / CLASSIC_WAIT_S[1]:.0f}×",
        ),
        (
            f"beyond the accelerator's {pair.compute_ms:g} ms",
            f"{times[0] - pair.compute_ms:.1f} ms",
            f"{times[1] - pair.compute_ms:.2g} ms",
            f"{pair.saved_percent:.1f} % saved",
            "",
        ),
    )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _put_into_page(table: str) -> None:
    """Write the table between the marks of the page that shows it."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
    PAGE.write_text(f"{text[:begin]}\n{table}\n{text[end:]}", encoding="utf-8")


def _keep(folder: RunFolder, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    skipped = shutil.ignore_patterns(".*", "analysis", "worker.log", "cancel", "__pycache__")
    shutil.copytree(folder.path, target, ignore=skipped)
    kept = RunFolder(target)
    _pack_traces(kept)
    _shorten_paths(kept)
    record = update_record(
        kept,
        lambda record: replace(
            record,
            id=target.name,
            environment={**record.environment, "host": HOST, "platform": "Linux"},
            status=replace(record.status, supervisor=None),
        ),
    )
    kept.lock.unlink(missing_ok=True)
    print(f"{target.name}: {json.dumps(record.environment)}")


def _pack_traces(folder: RunFolder) -> None:
    for window in folder.windows():
        for trace in window.glob("*.xplane.pb"):
            packed = window / f"{HOST}.xplane.pb.gz"
            packed.write_bytes(gzip.compress(trace.read_bytes(), mtime=0))
            trace.unlink()


def _shorten_paths(folder: RunFolder) -> None:
    document = json.loads(folder.files.read_text())
    for file in document["files"]:
        file["path"] = Path(file["path"]).name
    folder.files.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    sys.exit(main())
