"""Record the planted jobs and read what the diagnosis says of each."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from benchmarks.verdict.plan import Planted
from pipeline_lab import analyze
from pipeline_lab.analysis.results import Diagnosis
from pipeline_lab.errors import Unavailable
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore


@dataclass(frozen=True)
class Answer:
    """What the diagnosis of one job said; the fields of ``verdict`` in the JSON document, and what else is asked for."""

    name: str
    set: str
    repetition: int
    run: str
    verdict_class: str
    cause: str | None
    stage: str | None
    confidence: str
    sentence: str
    findings: tuple[str, ...]
    operations: tuple[str, ...]
    other_cpu_percent: float | None

    def is_right(self, job: Planted) -> bool:
        return not self.mistakes(job)

    def mistakes(self, job: Planted) -> list[str]:
        """Say what differs from the right answer."""
        wrong = []
        if self.verdict_class != job.verdict_class:
            wrong.append(f"class {self.verdict_class}, not {job.verdict_class}")
        elif job.causes and self.cause not in job.causes:
            wrong.append(f"cause {self.cause}, not {' or '.join(job.causes)}")
        elif job.stages and self.stage not in job.stages:
            wrong.append(f"stage {self.stage}, not one of {', '.join(job.stages)}")
        if job.finding is not None and job.finding not in self.findings:
            wrong.append(f"finding {job.finding} is missing")
        if job.operation is not None and job.operation not in self.operations:
            wrong.append(f"no gap names {job.operation}")
        return wrong


def record(jobs: list[Planted], repetitions: int, store: RunStore, output: Path) -> Iterator[tuple[Planted, Answer]]:
    """Run every job several times and yield each answer as soon as it is known; they are also added to ``output``."""
    with _worker() as (asked, answered), output.open("a") as results:
        for repetition in range(repetitions):
            for job in jobs:
                folder = store.create(job.options, render_source(job.options))
                folder.source.write_text(render_source(job.options), encoding="utf-8")
                asked.write(f"{folder.path}\n")
                asked.flush()
                if answered.readline().strip() != "0":
                    log = folder.log.read_text()[-2000:] if folder.log.exists() else ""
                    raise SystemExit(f"{job.name}: the job failed.\n{log}")
                answer = _read(job, repetition, folder)
                results.write(json.dumps(asdict(answer)) + "\n")
                results.flush()
                yield job, answer


@contextmanager
def _worker() -> Iterator[tuple[IO[str], IO[str]]]:
    command = [sys.executable, "-m", "benchmarks.verdict.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdin, process.stdout
        process.stdin.close()


def _read(job: Planted, repetition: int, folder: RunFolder) -> Answer:
    diagnosis = analyze(folder.path)
    verdict = diagnosis.verdict
    return Answer(
        name=job.name,
        set=job.set,
        repetition=repetition,
        run=str(folder.path),
        verdict_class=verdict.verdict_class.value,
        cause=verdict.cause,
        stage=verdict.stage,
        confidence=verdict.confidence.value,
        sentence=verdict.sentence,
        findings=tuple(finding.kind for finding in diagnosis.findings),
        operations=_operations(diagnosis),
        other_cpu_percent=diagnosis.other_cpu_percent,
    )


def _operations(diagnosis: Diagnosis) -> tuple[str, ...]:
    if isinstance(diagnosis.idle_gaps, Unavailable):
        return ()
    return tuple(sorted(set(diagnosis.idle_gaps.operations.column("operation").to_pylist())))
