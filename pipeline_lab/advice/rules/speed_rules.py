"""Rules that let the same work happen sooner (overlap, parallel calls, threads, order, whole batches), and send less padding."""

from collections.abc import Iterator

from pipeline_lab.advice.option_edits import edit_stages, set_pipeline, set_stage, set_workload, with_whole_batches
from pipeline_lab.advice.proposals import BOLD, CAREFUL, SAFE, Case, Proposal, Rule
from pipeline_lab.advice.stage_costs import RunningStage
from pipeline_lab.advice.step_terms import ORDER, TURNS
from pipeline_lab.analysis.verdict.sampling_findings import MUCH_PADDING_PERCENT
from pipeline_lab.errors import Unavailable
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.units import format_duration, format_percent

CALLS = (2, 4, 8, 16, 32)
MATTERS_SHARE = 0.1
"""Part of a step that a stage has to take before it is worth more calls."""
WORTH_IT = 0.97
"""More calls or threads are only proposed where they bring the step below this part of what fewer do."""


def overlap(case: Case) -> Iterator[Proposal]:
    """Prepare batches while the step runs."""
    if case.own.terms[0].name != TURNS or case.options.pipeline.stages[-1].prefetches:
        return
    own = case.own
    step, training, waiting = map(format_duration, (own.step_ns, own.ceiling_ns, own.step_ns - own.ceiling_ns))
    yield Proposal(
        "Add prefetch as the last stage.",
        f"Input and compute do not overlap: a step of {step} is {training} of training, then {waiting} of waiting for the next batch.",
        edit_stages(case.options, lambda stages: [*stages, {"stage": "prefetch", "buffer_size": "autotune"}]),
        ("A few more batches are held in memory.",),
    )


def more_calls(case: Case) -> Iterator[Proposal]:
    """Run more calls of a stage at once, with as many threads as that takes."""
    for stage in case.running:
        time_ns = _work_ns(case, stage) / stage.calls
        if time_ns < MATTERS_SHARE * case.measured.step_ns:
            continue
        more = [calls for calls in CALLS if calls > stage.calls]
        some = [calls for calls in more if calls <= case.pool_threads or stage.keeps_order]  # others would only wait
        few = _fewest(case, [_with_calls(case.options, stage, calls) for calls in some])
        wide = _fewest(case, [_with_calls(case.options, stage, calls, pool=calls) for calls in more])
        yield from _propose_calls(case, stage, few)
        if wide is not None and case.ns_per_example(wide) < WORTH_IT * min(
            case.ns_per_example(few), case.ns_per_example(case.options)
        ):
            yield from _propose_calls(case, stage, wide)


def more_threads(case: Case) -> Iterator[Proposal]:
    """Give the pool as many threads as the stages ask for."""
    pooled = [stage for stage in case.running if stage.uses_pool and not stage.is_skipped]
    wider = [set_pipeline(case.options, private_threadpool_size=size) for size in CALLS if size > case.pool_threads]
    if not pooled or (found := _fewest(case, wider)) is None:
        return
    size = found.pipeline.private_threadpool_size
    yield Proposal(
        f"Set private_threadpool_size to {size}.",
        f"The pool has {case.pool_threads} threads, and {_names(pooled)} would run more calls at once; AUTOTUNE does not "
        "raise the number.",
        found,
        (f"{size} threads instead of {case.pool_threads}.",),
    )


def any_order(case: Case) -> Iterator[Proposal]:
    """Hand on whatever is ready."""
    for stage in case.running:
        name = stage.stage.stage
        if stage.keeps_order and case.own.terms[0].name == f"{ORDER}{name}":
            yield Proposal(
                f"Set deterministic=False on {name}.",
                f"Its work alone would take {format_duration(_work_ns(case, stage) / stage.calls)} a batch, but finished elements wait for "
                "slower ones before them.",
                set_stage(case.options, stage.index, deterministic=False),
                ("The order of the examples differs from run to run.",),
                CAREFUL,
            )


def whole_batches(case: Case) -> Iterator[Proposal]:
    """Put batch before the functions, so that each call sees many examples."""
    sizes = case.options.pipeline.batch_sizes
    single = [stage for stage in case.running if stage.stage.is_function and not sizes[stage.index]]
    if not single or any(stage.is_skipped for stage in single):
        return
    names = [stage.stage.stage for stage in single]

    called = case.options.pipeline.batch_size
    yield Proposal(
        f"Put batch before {' and '.join(names)}, so that each call sees a whole batch.",
        f"{' and '.join(names)}: {called} calls for each batch, {format_duration(sum(_work_ns(case, stage) for stage in single))} of "
        "thread time.",
        with_whole_batches(case.options, names),
        ("Buffers after batch hold records instead of decoded examples.",),
        CAREFUL,
    )


def batches_from_python(case: Case) -> Iterator[Proposal]:
    """Let a Python generator yield whole batches."""
    workload, size = case.options.workload, case.options.pipeline.batch_size
    if not workload.made_by_python or workload.examples_per_call("read") >= size:
        return
    yield Proposal(
        f"Let the generator yield {size} examples at once.",
        f"Each of its calls costs Python time beside the example itself: {format_duration(_work_ns(case, case.running[0]))} a batch in all, "
        "and only one thread at a time can run Python.",
        set_workload(case.options, examples_at_once=size),
    )


def ragged(case: Case) -> Iterator[Proposal]:
    """Let each example keep its own length."""
    padding = case.results.padding
    if isinstance(padding, Unavailable) or padding.percent < MUCH_PADDING_PERCENT:
        return
    for index, stage in enumerate(case.options.pipeline.stages):
        if isinstance(stage, BatchStage) and stage.mode == "padded_batch":
            yield Proposal(
                "Set mode = ragged_batch on batch.",
                f"{format_percent(padding.percent)} of each batch is padding.",
                set_stage(case.options, index, mode="ragged_batch"),
                (
                    "The model must accept ragged tensors; batches sorted by length work with any model but keep some padding.",
                ),
                CAREFUL,
            )


SPEED_RULES: tuple[Rule, ...] = (overlap, more_calls, more_threads, any_order, whole_batches, batches_from_python)


def _propose_calls(case: Case, stage: RunningStage, options: RunOptions | None) -> Iterator[Proposal]:
    if options is None:
        return
    changed, name = options.pipeline.stages[stage.index], stage.stage.stage
    calls, threads = getattr(changed, "num_parallel_calls", None), options.pipeline.private_threadpool_size
    effects = []
    if threads != case.options.pipeline.private_threadpool_size:
        effects.append(f"{threads} threads in the pool instead of {case.pool_threads}.")
    is_read = not stage.index
    if is_read and changed != stage.stage:
        effects.append("Examples of several files are interleaved.")
    what = f"Read {calls} files at a time" if is_read else f"Give {name} {calls} parallel calls"
    yield Proposal(
        f"{what}{f' and the pool {threads} threads' if effects and threads and threads != case.pool_threads else ''}.",
        f"{name} takes {format_duration(_work_ns(case, stage))} of thread time a batch with {stage.calls:.0f} "
        f"call{'' if stage.calls == 1 else 's'} at once; others leave {case.measured.free_cores:.1f} of "
        f"{case.measured.cores:.0f} cores.",
        options,
        tuple(effects),
        BOLD if is_read and not _is_interleaved(stage) else SAFE,
    )


def _with_calls(options: RunOptions, stage: RunningStage, calls: int, pool: int | None = None) -> RunOptions | None:
    values = stage.stage.with_calls(calls, len(options.file_sizes) if options.file_sizes else None)
    changed = None if values is None else set_stage(options, stage.index, **values)
    return changed if changed is None or pool is None else set_pipeline(changed, private_threadpool_size=pool)


def _fewest(case: Case, choices: list[RunOptions | None]) -> RunOptions | None:
    """Return the first choice that is about as fast as the fastest."""
    best = min((case.ns_per_example(choice) for choice in choices), default=float("inf"))
    return next(
        (choice for choice in choices if choice is not None and WORTH_IT * case.ns_per_example(choice) <= best), None
    )


def _is_interleaved(stage: RunningStage) -> bool:
    return stage.stage.sizes_in_order(()) is None


def _work_ns(case: Case, stage: RunningStage) -> float:
    return case.times[stage.index].work_ns


def _names(stages: list[RunningStage]) -> str:
    return " and ".join(stage.stage.stage for stage in stages)
