"""Rules about the order of the stages, and about those that could run beside each other."""

from collections.abc import Callable, Iterator

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.element_size import elements_behind
from pipeline_lab.pipeline.finding import Finding, Weight, place_of, stages_of
from pipeline_lab.stages.delivery import PrefetchStage, PrefetchToDeviceStage
from pipeline_lab.stages.functions import AugmentStage, FunctionStage, LookupStage, ParseStage, ViewsStage
from pipeline_lab.stages.order import RepeatStage, ShuffleStage
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stores import StoreStage
from pipeline_lab.units import format_bytes, format_count
from pipeline_lab.workloads.audio import AudioWorkload
from pipeline_lab.workloads.features import FeaturesWorkload
from pipeline_lab.workloads.images import ImagesWorkload


def _frozen_augmentation(options: RunOptions) -> Iterator[Finding]:
    random = [(index, stage) for index, stage in enumerate(options.pipeline.stages) if _is_random(stage)]
    for index, stored in _stores(options):
        earlier = next((stage for place, stage in random if place < index), None)
        if earlier is not None:
            what = "crops" if isinstance(earlier, ViewsStage) else "augmentation"
            yield Finding(
                "frozen-augmentation",
                Weight.PROBLEM,
                index,
                f"The {stored.stage} comes after the random {what}, so every epoch repeats the images of the "
                f"first; put the {stored.stage} before {earlier.stage}.",
            )


def _endless_cache(options: RunOptions) -> Iterator[Finding]:
    endless = [index for index, stage in stages_of(options, RepeatStage) if stage.count is None]
    for index, stage in _stores(options):
        if endless and endless[0] < index:
            yield Finding(
                "endless-cache",
                Weight.PROBLEM,
                index,
                f"The {stage.stage} comes after an endless repeat: it is never complete, is never read, and fills the "
                f"{stage.keeps}; put it before repeat.",
            )


def _stores(options: RunOptions) -> list[tuple[int, StoreStage]]:
    """Return the stages that keep elements, with their places."""
    return [(index, stage) for index, stage in enumerate(options.pipeline.stages) if isinstance(stage, StoreStage)]


def _frozen_order(options: RunOptions) -> Iterator[Finding]:
    caches = [index for index, _ in _stores(options)]
    shuffles = [index for index, _ in stages_of(options, ShuffleStage)]
    for index in shuffles:
        later_cache = any(cache > index for cache in caches)
        if later_cache and not any(other > max(caches) for other in shuffles):
            yield Finding(
                "frozen-order",
                Weight.PROBLEM,
                index,
                f"The {options.pipeline.stages[max(caches)].stage} comes after shuffle, so every epoch has the order of "
                "the first; put shuffle behind it.",
            )


def _mixed_epochs(options: RunOptions) -> Iterator[Finding]:
    repeats = [index for index, _ in stages_of(options, RepeatStage)]
    for index, _ in stages_of(options, ShuffleStage):
        if repeats and repeats[0] < index:
            yield Finding(
                "mixed-epochs",
                Weight.ADVICE,
                index,
                "repeat comes before shuffle, so epochs run into each other: some examples come twice before others "
                "came once; put shuffle first.",
            )


def _shuffled_batches(options: RunOptions) -> Iterator[Finding]:
    sizes = options.pipeline.batch_sizes
    for index, _ in stages_of(options, ShuffleStage):
        if sizes[index] is not None:
            yield Finding(
                "shuffled-batches",
                Weight.ADVICE,
                index,
                "shuffle comes after batch: it reorders whole batches and leaves the examples in each of them together; "
                "put it before batch.",
            )


def _decoded_shuffle(options: RunOptions) -> Iterator[Finding]:
    elements = elements_behind(options)
    parse, views = place_of(options, ParseStage), place_of(options, ViewsStage)
    for index, _ in stages_of(options, ShuffleStage):
        parts_views = views is not None and views < index  # which come one after another, and decoded
        if elements[index].is_decoded and parse is not None and parse < index and not parts_views:
            yield Finding(
                "decoded-shuffle",
                Weight.ADVICE,
                index,
                "shuffle comes after parse, so its buffer holds decoded examples; before parse it would hold the smaller "
                "records.",
            )


def _early_lookup(options: RunOptions) -> Iterator[Finding]:
    lookup, workload = place_of(options, LookupStage), options.workload
    if lookup is None or not isinstance(workload, FeaturesWorkload):
        return
    for index, stage in enumerate(options.pipeline.stages[lookup + 1 :], lookup + 1):
        if isinstance(stage, ShuffleStage | StoreStage):
            yield Finding(
                "early-lookup",
                Weight.ADVICE,
                index,
                f"{stage.stage} comes after lookup and so holds vectors of {format_bytes(workload.vector_bytes)}; before "
                "lookup it would hold the numbers of the images instead.",
            )
    if workload.layout == "lookup" and options.pipeline.batch_sizes[lookup] is None:
        yield Finding(
            "lookup-by-example",
            Weight.ADVICE,
            lookup,
            "lookup comes before batch, so Python is called for every example, one call at a time; behind batch it reads "
            "all rows of a batch in one call.",
        )


def _class_by_class(options: RunOptions) -> Iterator[Finding]:
    """Say what reading in order means where every class lies in a folder of its own, of a size that is not known yet."""
    read, workload = options.pipeline.find("read"), options.workload
    if (
        not isinstance(read, ReadStage)
        or not read.is_in_order
        or not isinstance(workload, AudioWorkload | ImagesWorkload)
    ):
        return
    if workload.data != "folder":
        return
    buffers = [stage.buffer_size for _, stage in stages_of(options, ShuffleStage)]
    yield Finding(
        "class-by-class",
        Weight.ADVICE if buffers else Weight.PROBLEM,
        0,
        "Each class lies in a folder of its own, and folders are read one after the other: "
        + (
            f"unless the shuffle buffer of {format_count(max(buffers))} covers several classes, batches hold one or two "
            "of them; "
            if buffers
            else "without a shuffle every batch holds one class; "
        )
        + "set mode = interleave or sample.",
    )


def _missing_prefetch(options: RunOptions) -> Iterator[Finding]:
    stages = options.pipeline.stages
    last = len(stages) - 1
    if isinstance(stages[last], PrefetchStage | PrefetchToDeviceStage):
        return
    if place_of(options, PrefetchStage) is not None:
        yield Finding(
            "prefetch-not-last",
            Weight.ADVICE,
            last,
            f"prefetch is not the last stage: {stages[last].stage} behind it still makes the training step wait.",
        )
    elif not options.pipeline.tensorflow_rewrites:
        yield Finding(
            "no-prefetch",
            Weight.ADVICE,
            last,
            "There is no prefetch: batches are prepared while the device waits, and the device waits while they are "
            "prepared; add prefetch as the last stage.",
        )
    else:
        yield Finding(
            "injected-prefetch",
            Weight.FACT,
            last,
            "There is no prefetch; TensorFlow's rewrites, which are on, add one at the end unless the last stage works "
            "ahead by itself.",
        )


def _serial_stages(options: RunOptions) -> Iterator[Finding]:
    if options.pipeline.tensorflow_rewrites:
        return
    for index, stage in enumerate(options.pipeline.stages):
        if isinstance(stage, FunctionStage) and stage.num_parallel_calls is None:
            yield Finding(
                "serial-stage",
                Weight.ADVICE,
                index,
                f"{stage.stage} is serial and uses one core at a time; give it num_parallel_calls.",
            )


def _small_pool(options: RunOptions) -> Iterator[Finding]:
    pool = options.pipeline.private_threadpool_size
    for index, stage in enumerate(options.pipeline.stages):
        calls = getattr(stage, "num_parallel_calls", None)
        if pool is not None and isinstance(calls, int) and calls > pool and isinstance(stage, FunctionStage):
            yield Finding(
                "small-pool",
                Weight.ADVICE,
                index,
                f"{stage.stage} asks for {calls} calls at once, but the thread pool has {pool} threads, which is the "
                "number that counts; raise private_threadpool_size.",
            )


def _idle_slack(options: RunOptions) -> Iterator[Finding]:
    stages = options.pipeline.stages
    if options.pipeline.slack and not isinstance(stages[-1], PrefetchStage):
        yield Finding(
            "idle-slack",
            Weight.ADVICE,
            len(stages) - 1,
            "slack changes nothing unless prefetch is the last stage; add it there, or turn slack off.",
        )


def _is_random(stage: Stage) -> bool:
    if isinstance(stage, AugmentStage):
        return bool(stage.flip or stage.rotate_degrees or stage.cutout or stage.crop)
    return isinstance(stage, ViewsStage)


ORDER_RULES: tuple[Callable[[RunOptions], Iterator[Finding]], ...] = (
    _frozen_augmentation,
    _endless_cache,
    _frozen_order,
    _mixed_epochs,
    _shuffled_batches,
    _decoded_shuffle,
    _early_lookup,
    _class_by_class,
    _missing_prefetch,
    _serial_stages,
    _small_pool,
    _idle_slack,
)
