"""The Python interface: what the app and the command line do, a script or a notebook does with these seven functions.

Wherever a function takes a run, it takes every kind of `AnyRun`, and wherever it takes a store, every kind of
`AnyStore`. Each part of the package is loaded when a function first needs it, so that ``import pipeline_lab`` stays
quick.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pipeline_lab.errors import ArgumentError
from pipeline_lab.hooks import Program, show_with, start_with

if TYPE_CHECKING:
    import tensorflow as tf

    from pipeline_lab.analysis.results import Diagnosis
    from pipeline_lab.comparison.race_result import Race
    from pipeline_lab.comparison.recorded_runs import Comparison, RecordedRun
    from pipeline_lab.options.run_options import RunOptions
    from pipeline_lab.runs.record import Run, RunRecord
    from pipeline_lab.runs.run_folder import RunFolder
    from pipeline_lab.runs.store import RunStore
    from pipeline_lab.trace.schema import Trace
    from pipeline_lab.tuning.search_result import Tuning

AnyRun: TypeAlias = "str | PathLike[str] | Run | RunFolder | RunRecord | Diagnosis | RecordedRun"
"""A recorded run: its id, its folder, what `run` returned, its record or its diagnosis.

A log directory, a trace file and an archive of either count as runs too, of which less is known.
"""

AnyJob: TypeAlias = "RunOptions | AnyRun | Callable[..., Any]"
"""What can run: options, a preset's name, a JSON file of options, or a run, which is repeated with its options.

A function that returns a dataset is run as well, and a class as ``--workload`` takes it; both must be at the top level of a
Python file, from which another process imports them.
"""

AnyStore: TypeAlias = "RunStore | str | PathLike[str] | None"
"""A store of runs, or its folder; None for the store that the command line and the app use too."""


def analyze(run: AnyRun, *, store: AnyStore = None) -> "Diagnosis":
    """Diagnose a run, a log directory, a trace file or an archive, and say what to try.

    Args:
        run: What to diagnose.
        store: Where a run's id is looked up.

    Returns:
        All analyses with a verdict and suggestions. A saved diagnosis is returned at once; a new one is saved.

    Raises:
        TraceReadError: There is no such run or file, or nothing in it can be read.
        ComparisonError: It is a race or a search, which holds several runs.

    Example:
        >>> from pipeline_lab import analyze
        >>> diagnosis = analyze("sample-baseline")
        >>> diagnosis.verdict.verdict_class.value
        'input-bound'
    """
    from pipeline_lab.advice.advising import advise
    from pipeline_lab.advice.analyzing import analyze_path
    from pipeline_lab.analysis.results import Diagnosis

    found = _find_recorded(run, store)
    if isinstance(found, Path):
        return analyze_path(found)
    return advise(found if isinstance(found, Diagnosis) else found.diagnosis)


def run(job: AnyJob, store: AnyStore = None) -> "Run":
    """Run one job to its end, in its own process; an interrupt cancels it.

    Args:
        job: What to run.
        store: Where to keep it.

    Returns:
        The run with its record; `analyze` takes it.

    Raises:
        OptionsError: There is no such preset, file or run, or the job is bound to fail.
        RunFailedError: The job failed; the text says why, and the run is kept.
        StoreError: The store cannot be written.

    Example:
        >>> from pipeline_lab import run
        >>> done = run("baseline", store="profiles")
        >>> done.record.status.state.value
        'done'
    """
    from pipeline_lab.runs.launch.launcher import launch, wait_for_end
    from pipeline_lab.runs.record import Run

    opened = _open_store(store)
    folder = launch(opened, _find_options(job, opened))
    return Run(folder, wait_for_end(folder, "Run"))


def race(
    *jobs: AnyJob,
    store: AnyStore = None,
    name: str | None = None,
    pairs: int | None = None,
    block_steps: int | None = None,
    margin_percent: float | None = None,
    fail_if_slower_percent: float | None = None,
    max_seconds: float | None = None,
    warmup_seconds: float | None = None,
    max_extra_load_percent: float | None = None,
    alpha: float | None = None,
    seed: int | None = None,
    timeout_s: float | None = None,
    predicted_ratios: Sequence[float | None] | None = None,
) -> "Race":
    """Race jobs against the first of them in one separate process; an interrupt cancels the race.

    Blocks of every arm run in random order until the answer is known or the budget is used up.

    Args:
        jobs: Two to eight arms, the baseline first.
        store: Where to keep the race.
        name: What to call it.
        pairs: Rounds after which it ends in any case; 30 if None.
        block_steps: Measured steps of an arm in a round; 10 if None.
        margin_percent: Smallest difference that matters; 3 if None.
        fail_if_slower_percent: Race only until it is clear whether a candidate is slower by more than this.
        max_seconds: The race ends after this time, warm-up not counted; 600 if None.
        warmup_seconds: Time for the warm-up of an arm at most; 60 if None.
        max_extra_load_percent: A round in which other programs used this much more of the cores than usual does not
            count; 25 if None.
        alpha: Largest chance that any interval misses the truth; 0.05 if None.
        seed: Of the order of the arms; 0 if None.
        timeout_s: Time for all but warm-ups and rounds; 3600 if None.
        predicted_ratios: What each candidate was predicted to take over the baseline.

    Returns:
        Each candidate's ratio to the baseline with its interval, and what was measured in every arm.

    Raises:
        OptionsError: An arm cannot be found, or the race is not possible as requested.
        RunFailedError: The race failed; the text says why, and what it left is kept.
        TraceIncompleteError: It was canceled before its first round was complete.
        StoreError: The store cannot be written.

    Example:
        >>> from pipeline_lab import race
        >>> found = race("baseline", "optimised", store="profiles", pairs=20)
        >>> found.candidates[0].standing.outcome.value
        'faster'
    """
    from pipeline_lab.comparison.race_result import read_race
    from pipeline_lab.comparison.racing import choose_race
    from pipeline_lab.runs.launch.launcher import launch, wait_for_end

    opened = _open_store(store)
    options = choose_race(
        [_find_options(job, opened) for job in jobs],
        name=name,
        pairs=pairs,
        block_steps=block_steps,
        margin_percent=margin_percent,
        fail_if_slower_percent=fail_if_slower_percent,
        max_seconds=max_seconds,
        warmup_seconds=warmup_seconds,
        max_extra_load_percent=max_extra_load_percent,
        alpha=alpha,
        seed=seed,
        timeout_s=timeout_s,
        predicted_ratios=predicted_ratios,
    )
    folder = launch(opened, options)
    wait_for_end(folder, "Race")
    return read_race(folder)


def compare(baseline: AnyRun, *candidates: AnyRun, store: AnyStore = None) -> "Comparison":
    """Compare recorded runs or logs with a baseline.

    Args:
        baseline: What the others are compared with.
        candidates: One to nineteen more runs.
        store: Where ids are looked up.

    Returns:
        What differs in options, environment and source, and what differs in every number.

    Raises:
        ComparisonError: There is no candidate or there are too many, or one of them is a race or a search.
        TraceReadError: One of them cannot be found or read.

    Example:
        >>> from pipeline_lab import compare
        >>> comparison = compare("sample-baseline", "sample-optimised")
        >>> comparison.step_time[0].outcome.value
        'faster'
    """
    from pipeline_lab.comparison.opening import compare_recorded

    return compare_recorded(*(_find_recorded(each, store) for each in (baseline, *candidates)))


def tune(
    start: AnyJob,
    *,
    store: AnyStore = None,
    name: str | None = None,
    budget_s: float | None = None,
    max_configurations: int | None = None,
    max_memory_mb: int | None = None,
    max_threads: int | None = None,
    may_reorder: bool | None = None,
    margin_percent: float | None = None,
    only: Mapping[str, Iterable[object]] | None = None,
    explore: bool | None = None,
    ray: str | None = None,
    gpus_per_trial: int | None = None,
    block_steps: int | None = None,
    pairs: int | None = None,
    seed: int | None = None,
) -> "Tuning":
    """Search for a faster pipeline around a start; an interrupt cancels the search, which keeps its best.

    The model proposes and races decide; what the winner gained is measured against the start.

    Args:
        start: Where the search begins. A function that returns a dataset is called with each of the arguments that
            ``only`` names.
        store: Where to keep the search and its trials.
        name: What to call it.
        budget_s: Time that runs and races may take together; 900 if None.
        max_configurations: Configurations that are measured at most, the start among them; 8 if None.
        max_memory_mb: Memory that buffers and caches may hold; half of the machine's if None.
        max_threads: Threads that may read and map at the same time; any number if None.
        may_reorder: Also try pipelines that give up the order of the elements.
        margin_percent: Smallest difference that matters; 3 if None.
        only: Search only these values of these knobs, such as ``{"prefetch": [2, 8]}``.
        explore: Let Optuna propose configurations, for pipelines that the model cannot predict.
        ray: Address of the Ray cluster whose machines measure; this machine if None.
        gpus_per_trial: GPUs of a trial on a machine of the cluster; whole machines if None.
        block_steps: Measured steps of one arm in one round of a race; 10 if None.
        pairs: Rounds of the last race, of the winner against the start; 30 if None.
        seed: Of the search; 0 if None.

    Returns:
        The winner with its options and source, and every step of the search.

    Raises:
        OptionsError: The start cannot be found, or there is nothing to search around it.
        RunFailedError: The search failed; the text says why, and what it found is kept.
        StoreError: The store cannot be written.

    Example:
        >>> from pipeline_lab import tune
        >>> found = tune("synthetic", store="profiles", budget_s=600, only={"prefetch": [2, 8]}, explore=True)
        >>> found.ended is not None
        True
    """
    from pipeline_lab.options.tune_options import read_tune_options
    from pipeline_lab.runs.launch.launcher import wait_for_end
    from pipeline_lab.tuning.search_launch import launch_tune, write_values
    from pipeline_lab.tuning.search_result import read_tuning
    from pipeline_lab.workloads.module import ModuleWorkload

    opened = _open_store(store)
    options = _find_options(start, opened)
    settings = {
        "name": name,
        "budget_s": budget_s,
        "max_configurations": max_configurations,
        "max_memory_mb": max_memory_mb,
        "max_threads": max_threads,
        "may_reorder": may_reorder,
        "margin_percent": margin_percent,
        "only": None
        if only is None
        else write_values(only, are_arguments=isinstance(options.workload, ModuleWorkload)),
        "explore": explore,
        "ray": ray,
        "gpus_per_trial": gpus_per_trial,
        "block_steps": block_steps,
        "pairs": pairs,
        "seed": seed,
    }
    given = {key: value for key, value in settings.items() if value is not None}
    folder = launch_tune(opened, read_tune_options({"start": options.model_dump(mode="json"), **given}))
    wait_for_end(folder, "The search")
    return read_tuning(folder)


def explain(
    dataset: "tf.data.Dataset",
    step: Callable[[Any], Any] | None = None,
    *,
    steps: int = 100,
    store: AnyStore = None,
    name: str = "dataset",
) -> "Diagnosis":
    """Take some batches of a dataset in this process, and say which stage limits it and why.

    Args:
        dataset: Yields batches; it is only read.
        step: What is done with each batch; None takes batches as fast as they come.
        steps: Batches to take, in addition to a few before them and some to time pipeline and step separately.
        store: Where to keep the recording, which is a run like any other.
        name: Of the run.

    Returns:
        The diagnosis of the recording.

    Raises:
        OptionsError: It is not a dataset, or the number of steps is out of range.
        DataError: The dataset yields no batch.
        StoreError: The store cannot be written.

    Example:
        >>> import tensorflow as tf
        >>> from pipeline_lab import explain
        >>> dataset = tf.data.Dataset.range(10_000).map(lambda x: x + 1).batch(32)
        >>> diagnosis = explain(dataset, steps=20, store="profiles")
        >>> diagnosis.source.kind
        'run'
    """
    from pipeline_lab.capture.record_dataset import record_dataset

    return analyze(record_dataset(dataset, step, steps=steps, store=_open_store(store), name=name))


def open_trace(run: AnyRun, *, store: AnyStore = None) -> "Trace":
    """Read the one trace of a file, a run or a log directory: its planes, lines and events as columns.

    Args:
        run: Where the trace is.
        store: Where a run's id is looked up.

    Returns:
        The trace. What a damaged file still holds is read too; ``salvage`` says what was lost.

    Raises:
        TraceReadError: There is none, or more than one.

    Example:
        >>> from pipeline_lab import open_trace
        >>> trace = open_trace("host.xplane.pb")
        >>> trace.host_plane.name
        '/host:CPU'
    """
    from pipeline_lab.trace.sources import read_trace

    return read_trace(_find_path(run, store))


def _open_store(store: AnyStore) -> "RunStore":
    """Open a store to write to; its folder need not exist yet."""
    from pipeline_lab.runs.store import RunStore, open_store

    if isinstance(store, RunStore):
        return store
    if store is None or isinstance(store, str | PathLike):
        return open_store(None if store is None else Path(store))
    raise ArgumentError(f"A store is a RunStore or the path of its folder, not an object of type {_kind(store)}.")


def _find_recorded(run: AnyRun, store: AnyStore) -> "Path | Diagnosis | RecordedRun":
    """Return where a run is, or what is already known about it."""
    from pipeline_lab.runs.record import Run, RunRecord
    from pipeline_lab.runs.run_folder import RunFolder
    from pipeline_lab.runs.store import RunStore, find_path

    if isinstance(run, Run | RunFolder):
        return run.path
    if isinstance(run, RunRecord):
        return _open_store(store).folder(run.id).path
    if isinstance(run, str | PathLike):
        opened = _open_store(store)  # refuses anything but a store
        return find_path(run, opened if isinstance(store, RunStore) or store is None else opened.root)
    from pipeline_lab.analysis.results import Diagnosis
    from pipeline_lab.comparison.recorded_runs import RecordedRun

    if isinstance(run, Diagnosis | RecordedRun):
        return run
    raise ArgumentError(
        f"A run is named by its id, by a path, or by what run() or analyze() returned, not by an object of type {_kind(run)}."
    )


def _find_path(run: AnyRun, store: AnyStore) -> Path:
    found = _find_recorded(run, store)
    if isinstance(found, Path):
        return found
    from pipeline_lab.comparison.recorded_runs import RecordedRun

    return Path((found.diagnosis if isinstance(found, RecordedRun) else found).source.path)


def _find_options(job: AnyJob, store: "RunStore") -> "RunOptions":
    """Return the options of a job."""
    from pipeline_lab.comparison.racing import find_arm, options_of_record
    from pipeline_lab.options.run_options import RunOptions
    from pipeline_lab.runs.record import RunRecord

    if isinstance(job, RunOptions | str | PathLike):
        return find_arm(job, store)
    if isinstance(job, RunRecord):
        return options_of_record(job)
    if callable(job):
        from pipeline_lab.tuning.search_launch import options_of_function

        return options_of_function(job)
    return find_arm(_find_path(job, store), store)


def _kind(value: object) -> str:
    return type(value).__name__


def _describe_briefly(result: object) -> str:
    from pipeline_lab.report.renderers.notebook import describe_briefly

    return describe_briefly(result)


def _describe(result: object) -> dict[str, str]:
    from pipeline_lab.report.renderers.notebook import describe

    return describe(result)


show_with(_describe_briefly, _describe)
start_with(
    {
        Program.WORKER: "pipeline_lab.worker",
        Program.SCRIPT_RACE: "pipeline_lab.capture.script_race",
        Program.CAPTURE: "pipeline_lab.capture.remote",
        Program.CLOSING: "pipeline_lab.cli.closing",
    }
)
