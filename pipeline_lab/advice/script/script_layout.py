"""What the step of a script is the longest of: its stages laid out on their threads, beside what the step itself takes.

Where the pipeline starts again in each epoch, the step stands still until the first batch is there, and what a shuffle took
into its buffer meanwhile need not be made beside the steps: that time comes on top of the longest term.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipeline_lab.advice.script.script_edits import Assumed
from pipeline_lab.advice.script.script_run import ScriptRun
from pipeline_lab.advice.script.script_stages import ScriptStage
from pipeline_lab.advice.step_terms import NAMED_SHARE, ORDER, POOL, PROCESSOR, PYTHON, STEP, TURNS, TURNS_SHARE, Term
from pipeline_lab.advice.what_if import LEAST_NS
from pipeline_lab.analysis.input.model_nodes import REFILLED

EPOCHS = "start of each epoch"
MOST_SLOWING = 1.5
"""What each ns of the pipeline's processor time lengthens a step by at most: a core that it takes, and caches that it empties."""


def lay_out(run: ScriptRun, stages: Sequence[ScriptStage], assumed: Assumed) -> list[Term]:
    """Return what a step within an epoch is the longest of, the longest first."""
    stages = _within_epochs(run, stages)
    root = next(index for index, stage in enumerate(stages) if stage.parent is None)
    terms, serial_ns = _pipeline(run, stages, root, assumed)
    factor = run.pipeline_factor
    if assumed.other_cores < run.other_cores:  # what they took is what the stages' times don't explain
        factor = min(factor, 1.0)
    terms = [*(replace(term, time_ns=term.time_ns * factor) for term in terms), *_order(run, stages)]
    serial_ns *= factor
    name = TURNS if serial_ns > TURNS_SHARE * run.ceiling_ns else STEP
    terms.append(Term(name, run.ceiling_ns + run.slowing * _processor_ns(run, stages) + serial_ns))
    if run.step_cpu_ns is not None:
        cpu_ns = run.step_cpu_ns + _processor_ns(run, stages)
        terms.append(Term(PROCESSOR, run.cpu_factor * cpu_ns / run.free_cores(assumed.other_cores)))
    return sorted(terms, key=lambda term: -term.time_ns)


def _processor_ns(run: ScriptRun, stages: Sequence[ScriptStage]) -> float:
    return run.cpu_share * sum(stage.work_ns for stage in stages)


def share_cores(run: ScriptRun) -> ScriptRun:
    """Tell what the pipeline adds to a step that computes on the same cores from what the step takes alone.

    Where the step needs the core that the pipeline is on, it waits for as long as the pipeline computes: the more often, the
    more cores are at work on average, of which the step keeps one at work at least. What the pipeline did while the step waited
    for it, on as many cores as its threads can use, slowed nothing down. Published scripts that were timed with a held batch
    (``benchmarks.scripts``) lost half to twice as much. Where the step was timed alone, what it takes longer beside the pipeline
    is known.
    """
    made_ns = _processor_ns(run, _within_epochs(run, run.stages))
    if run.beside_ns and made_ns:
        return replace(run, slowing=min(MOST_SLOWING, run.beside_ns / made_ns))
    if run.cores_used is None:
        return run
    terms = lay_out(run, run.stages, Assumed(run.other_cores))
    alone_ns = max((term.time_ns for term in terms if term.name not in (STEP, TURNS, PROCESSOR)), default=0.0)
    at_work = min(run.cores, made_ns / alone_ns) if alone_ns else run.cores  # on how many cores a pipeline can be
    beside_ns = max(0.0, made_ns - at_work * max(0.0, run.steady_ns - run.ceiling_ns))
    if not beside_ns:
        return run
    free = run.free_cores(run.other_cores)
    share = min(1.0, max(0.0, (run.cores_used - 1.0) / (free - 1.0))) if free > 1.0 else 1.0
    added_ns = min(share * beside_ns, run.ceiling_ns / 2)
    return replace(run, ceiling_ns=run.ceiling_ns - added_ns, slowing=added_ns / made_ns)


def slow_down(run: ScriptRun, times: float) -> ScriptRun:
    """Return a script to whose step the pipeline adds so many times what it is taken to add; the step as it is stays."""
    added_ns = run.slowing * _processor_ns(run, _within_epochs(run, run.stages))
    times = min(times, 1.0 + run.ceiling_ns / 2 / added_ns) if added_ns else 1.0
    return replace(run, ceiling_ns=run.ceiling_ns + (1.0 - times) * added_ns, slowing=times * run.slowing)


def starting_ns(run: ScriptRun, stages: Sequence[ScriptStage], assumed: Assumed) -> float:
    """Return what the starts of epochs add to the mean step: as they were seen, by how much longer the first batch takes to make."""
    if not run.starting_ns:
        return 0.0
    was_ns, now_ns = (_first_batch_ns(run, each, assumed) for each in (run.stages, stages))
    return run.starting_ns * now_ns / max(LEAST_NS, was_ns)


def _first_batch_ns(run: ScriptRun, stages: Sequence[ScriptStage], assumed: Assumed) -> float:
    root = next(index for index, stage in enumerate(stages) if stage.parent is None)
    refilled = _refilled(stages)
    first_ns = _alone_ns(run, stages, root, assumed)
    if refilled is None:
        return first_ns
    upstream = [index for index, stage in enumerate(stages) if stage.parent == refilled]
    filled_ns = sum(_alone_ns(run, stages, index, assumed) for index in upstream)
    return first_ns + _buffered_batches(run, stages[refilled]) * filled_ns


def _alone_ns(run: ScriptRun, stages: Sequence[ScriptStage], index: int, assumed: Assumed) -> float:
    """Return how long a stage and all that is upstream of it take for a batch while the step waits for them."""
    terms, serial_ns = _pipeline(run, stages, index, assumed)
    work_ns = sum(stages[place].work_ns for place in _with_upstream(stages, index))
    cpu_ns = run.cpu_share * work_ns / run.free_cores(assumed.other_cores)
    return max(serial_ns, cpu_ns, *(term.time_ns for term in terms), 0.0)


def _with_upstream(stages: Sequence[ScriptStage], index: int) -> Iterator[int]:
    yield index
    for place, stage in enumerate(stages):
        if stage.parent == index:
            yield from _with_upstream(stages, place)


def _refilled(stages: Sequence[ScriptStage]) -> int | None:
    """Return the place of the last shuffle before the training."""
    return next((index for index, stage in enumerate(stages) if stage.name in REFILLED), None)


def _buffered_batches(run: ScriptRun, stage: ScriptStage) -> float:
    """Return how many batches a shuffle takes into its buffer, no more than an epoch has."""
    sizes = [run.recipe.call(number).arguments.get("buffer_size") for number in stage.calls]
    known = [size for size in sizes if isinstance(size, int) and size > 0]
    held = max(known) / stage.visits if known and stage.visits else float("inf")
    return min(held, run.epoch_batches or 0.0)


def _within_epochs(run: ScriptRun, stages: Sequence[ScriptStage]) -> Sequence[ScriptStage]:
    """Return the stages with the work that is left to do beside the steps, once a buffer has been filled."""
    refilled = _refilled(stages)
    if not run.starting_ns or refilled is None or not run.epoch_batches:
        return stages
    left = 1.0 - _buffered_batches(run, stages[refilled]) / run.epoch_batches
    upstream = set(_with_upstream(stages, refilled)) - {refilled}
    return [
        replace(stage, work_ns=stage.work_ns * left) if index in upstream else stage
        for index, stage in enumerate(stages)
    ]


def _pipeline(run: ScriptRun, stages: Sequence[ScriptStage], index: int, assumed: Assumed) -> tuple[list[Term], float]:
    """Return the terms of a stage and all that is upstream of it, and what its consumer's thread runs of them."""
    terms: list[Term] = []
    serial_ns = sum(ns for _, ns in _visit(stages, index, terms))
    below = [stages[place] for place in _with_upstream(stages, index)]
    computes = 1.0 if run.python_computes else run.cpu_share
    python_ns = sum(stage.work_ns * stage.python_share for stage in below) * computes * assumed.holds_lock
    pooled_ns = sum(stage.work_ns for stage in below if stage.is_pooled)
    terms += [Term(PYTHON, python_ns)] if python_ns else []
    terms += [Term(POOL, pooled_ns / run.pool_threads)] if pooled_ns else []
    return terms, serial_ns


def _order(run: ScriptRun, stages: Sequence[ScriptStage]) -> Iterator[Term]:
    """Yield what keeping the order costs, where it holds the script up: the less, the more calls may go on meanwhile."""
    if run.order_stall is not None and stages[run.order_stall].keeps_order:
        was, now = run.stages[run.order_stall], stages[run.order_stall]
        yield Term(f"{ORDER}{now.words or now.name}", run.steady_ns * min(1.0, was.at_once / now.at_once))


def _visit(stages: Sequence[ScriptStage], index: int, terms: list[Term]) -> list[tuple[ScriptStage, float]]:
    """Add the terms of a stage and all upstream of it; return the serial stages that its consumer's thread runs."""
    stage = stages[index]
    below = [place for place, other in enumerate(stages) if other.parent == index]
    serial = [each for place in below for each in _visit(stages, place, terms)]
    if not stage.works_ahead:
        return [*serial, (stage, stage.work_ns)]
    if "Interleave" in stage.name:  # its calls run what is upstream of it too
        serial.append((stage, stage.work_ns))
        terms += _thread([(each, ns / stage.at_once) for each, ns in serial])
        return []
    terms += _thread(serial)
    # Each of the calls of a map that run at once takes its element first, from what is upstream on the map's thread.
    taken = serial if "Map" in stage.name else []
    terms += _thread([(each, ns / stage.at_once) for each, ns in (*taken, (stage, stage.work_ns))])
    return []


def _thread(serial: Sequence[tuple[ScriptStage, float]]) -> list[Term]:
    """Return the term of a thread that runs serial stages; only those that matter name it."""
    total_ns = sum(ns for _, ns in serial)
    named = [stage.words or stage.name for stage, ns in serial if ns >= NAMED_SHARE * total_ns]
    return [Term(" + ".join(dict.fromkeys(named)), total_ns)] if total_ns else []
