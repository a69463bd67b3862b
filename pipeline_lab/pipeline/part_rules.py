"""Rules about stages that let only a part of the data through: what they read in vain, and where they should stand."""

from collections.abc import Callable, Iterator

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.element_size import Element, elements_behind
from pipeline_lab.pipeline.finding import Finding, Weight, place_of, stages_of
from pipeline_lab.stages.order import RepeatStage, ShuffleStage
from pipeline_lab.stages.parts import FilterStage, RandomShardStage, ShardStage, SkipStage, TakeStage
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Amount
from pipeline_lab.stages.stores import CacheStage, StoreStage
from pipeline_lab.units import format_bytes, format_count

_WORK = ("parse", "views", "augment", "lookup", "map")


def _read_in_vain(options: RunOptions) -> Iterator[Finding]:
    amounts, elements = options.amounts, elements_behind(options)
    if amounts is None:
        return
    for index, stage in enumerate(options.pipeline.stages):
        before, behind = amounts[index - 1], amounts[index]
        if isinstance(stage, SkipStage):
            lost = f"{_amount(stage.count, elements[index])} before the first that it hands on"
            yield _vain(index, Weight.FACT, f"skip reads {lost}, in vain, whenever the data begins")
        elif isinstance(stage, FilterStage) and not before.is_endless and behind.elements < before.elements:
            lost = _amount(before.elements - behind.elements, elements[index])
            yield _vain(index, Weight.FACT, f"filter reads about {lost} of an epoch in vain")
        elif isinstance(stage, ShardStage):
            yield _vain_of_shard(options, index, stage)
        elif isinstance(stage, RandomShardStage) and not before.is_endless:
            yield _vain_of_random_shard(index, stage, before, elements[index])


def _vain_of_shard(options: RunOptions, index: int, stage: ShardStage) -> Finding:
    read, sizes = options.pipeline.find("read"), options.file_sizes or ()
    can_share_files = isinstance(read, ReadStage) and read.num_shards == 1 and len(sizes) >= stage.num_shards > 1
    fix = "; shard the files instead (num_shards of read), which reads nothing in vain" if can_share_files else ""
    part = f"{stage.num_shards - 1} of {stage.num_shards} elements"
    weight = Weight.ADVICE if can_share_files else Weight.FACT
    return _vain(index, weight, f"shard reads {part} in vain{fix}")


def _vain_of_random_shard(index: int, stage: RandomShardStage, before: Amount, element: Element) -> Finding:
    begins = [min(shard * stage.shard_size, int(before.elements)) for shard in range(stage.num_shards)]
    used = max(1, int(min(before.elements, stage.num_shards * stage.shard_size)))
    most = _amount(begins[-1], element)
    return _vain(
        index,
        Weight.FACT,
        f"random_shard reads {sum(begins) / used:.2g} elements in vain for each that it hands on, and up to {most} "
        "before the first of a stretch",
    )


def _vain(index: int, weight: Weight, sentence: str) -> Finding:
    return Finding("read-in-vain", weight, index, f"{sentence}.")


def _worked_in_vain(options: RunOptions) -> Iterator[Finding]:
    kinds = [stage.stage for stage in options.pipeline.stages]
    for index, stage in enumerate(options.pipeline.stages):
        earlier = [kind for kind in _WORK if kind in kinds[:index]]
        if earlier and isinstance(stage, SkipStage | ShardStage | RandomShardStage | FilterStage):
            yield Finding(
                "worked-in-vain",
                Weight.ADVICE,
                index,
                f"{stage.stage} comes after {earlier[-1]}, which so works on what is then left out; put {stage.stage} "
                "before it.",
            )


def _unsteady_shards(options: RunOptions) -> Iterator[Finding]:
    mixed_by = _mixed_by(options)
    for index, stage in enumerate(options.pipeline.stages):
        mixer = next((name for place, name in mixed_by if place < index), None)
        if mixer is None:
            continue
        if isinstance(stage, ShardStage):
            sentence = f"shard comes after {mixer}: each job mixes in an order of its own, so that shards overlap"
        elif isinstance(stage, RandomShardStage):
            sentence = (
                f"random_shard comes after {mixer}: each stretch is cut from another order, so that some examples "
            )
            sentence += "come twice and others never"
        else:
            continue
        yield Finding("unsteady-shards", Weight.PROBLEM, index, f"{sentence}; mix behind {stage.stage}.")


def _mixed_by(options: RunOptions) -> list[tuple[int, str]]:
    """Return the stages that hand on another order each time, with their places."""
    read = options.pipeline.find("read")
    found = [(0, "shuffle_files")] if isinstance(read, ReadStage) and read.shuffle_files else []
    found += [(0, "sampling")] if isinstance(read, ReadStage) and read.mode == "sample" else []
    found += [(index, "shuffle") for index, stage in stages_of(options, ShuffleStage) if stage.reshuffle_each_iteration]
    return found + [(index, "filter") for index, _ in stages_of(options, FilterStage)]


def _partly_read_cache(options: RunOptions) -> Iterator[Finding]:
    amounts = options.amounts
    for index, _ in stages_of(options, CacheStage):
        stages = list(enumerate(options.pipeline.stages))[index + 1 :]
        for place, stage in stages:
            if isinstance(stage, RepeatStage):
                break
            is_cut = isinstance(stage, TakeStage) and (
                amounts is None or amounts[place - 1].elements > amounts[place].elements
            )
            if is_cut or isinstance(stage, RandomShardStage):
                yield Finding(
                    "partly-read-cache",
                    Weight.PROBLEM,
                    index,
                    f"{stage.stage} behind the cache stops before the end of the data, so that the cache is never "
                    f"complete and is thrown away; put the cache behind {stage.stage}.",
                )
                break


def _frozen_filter(options: RunOptions) -> Iterator[Finding]:
    filtered = place_of(options, FilterStage)
    for index, stage in enumerate(options.pipeline.stages):
        if filtered is not None and index > filtered and isinstance(stage, StoreStage):
            yield Finding(
                "frozen-filter",
                Weight.ADVICE,
                index,
                f"{stage.stage} comes after the random filter, so every epoch has the examples that the first one kept; "
                "put filter behind it for others each time.",
            )


def _amount(count: float, element: Element) -> str:
    """Write elements as examples, and their size where it is known."""
    size = "" if element.size_bytes is None else f" ({format_bytes(int(count) * element.size_bytes)})"
    return f"{format_count(int(count) * element.examples)} examples{size}"


PART_RULES: tuple[Callable[[RunOptions], Iterator[Finding]], ...] = (
    _partly_read_cache,
    _unsteady_shards,
    _worked_in_vain,
    _frozen_filter,
    _read_in_vain,
)
