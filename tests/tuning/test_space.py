import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.presets import PRESETS, find_preset
from pipeline_lab.options.run_options import RunOptions, own_options, read_options, set_options
from pipeline_lab.pipeline.lint import lint_pipeline
from pipeline_lab.stages.batches import BatchStage
from pipeline_lab.stages.delivery import PrefetchStage, PrefetchToDeviceStage
from pipeline_lab.stages.order import RepeatStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage_values import Weight
from pipeline_lab.tuning.space import START, Space, find_knobs, make_space, write_argument
from pipeline_lab.workloads.module import ModuleWorkload
from tests.support.presets import BASELINE, OPTIMISED
from tests.support.true_times import NAIVE, SMALL


def values_of(options: RunOptions) -> dict[str, tuple[str, ...]]:
    return {knob.name: knob.values for knob in find_knobs(options)}


def at(options: RunOptions, **values: str) -> RunOptions:
    space = make_space(options)
    named = {name.replace("_", " "): value for name, value in values.items()}
    found = space.at([named.get(knob.name, knob.now) for knob in space.knobs])
    assert found is not None
    return found.options


def stages(options: RunOptions) -> list[str]:
    return [stage.stage for stage in options.pipeline.stages]


@pytest.mark.slow
def test_a_space_holds_every_combination_and_its_start() -> None:
    space = make_space(NAIVE, only=SMALL)
    found = list(space.configurations())
    assert len(found) == space.size == 4 * 3 * 3
    assert len({each.name for each in found}) == len(found)
    (start,) = [each for each in found if each.name == START]
    assert start is space.start
    assert start.options == NAIVE


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
@pytest.mark.slow
def test_a_knob_leaves_alone_what_is_trained_on(preset: object, data: st.DataObject) -> None:
    start = find_preset(preset.name).options
    space = make_space(start)
    found = space.at([data.draw(st.sampled_from(knob.values)) for knob in space.knobs])
    if found is None:
        return
    options = found.options
    assert (options.workload, options.training, options.profiling) == (start.workload, start.training, start.profiling)
    assert options.pipeline.batch_size == start.pipeline.batch_size
    assert read_options(options.to_json()) == options
    new = {each.kind for each in lint_pipeline(options) if each.weight is Weight.PROBLEM}
    assert new <= {each.kind for each in lint_pipeline(start) if each.weight is Weight.PROBLEM}


def test_maps_move_behind_the_batch_and_back() -> None:
    over = at(BASELINE.options, map_over="batch")
    assert stages(over) == ["read", "shuffle", "repeat", "batch", "parse", "augment"]
    back = at(OPTIMISED.options, map_over="example")
    assert stages(back) == ["read", "shuffle", "repeat", "parse", "augment", "batch", "prefetch"]


def test_a_cache_stands_before_everything_random() -> None:
    assert stages(at(BASELINE.options, cache="records"))[:3] == ["read", "cache", "shuffle"]
    assert stages(at(BASELINE.options, cache="parsed"))[:4] == ["read", "parse", "cache", "shuffle"]
    assert "cache" not in values_of(OPTIMISED.options)  # it visits the files in a new order each epoch
    assert "cache" not in values_of(find_preset("random-shards").options)  # it never reads all in one go


def test_a_cached_parse_leaves_the_other_maps_over_the_batch() -> None:
    both = at(BASELINE.options, cache="parsed", map_over="batch")
    assert stages(both) == ["read", "parse", "cache", "shuffle", "repeat", "batch", "augment"]


def test_a_prefetch_is_added_changed_and_taken_away() -> None:
    assert at(NAIVE, prefetch="4").pipeline.stages[-1] == PrefetchStage(buffer_size=4)
    assert values_of(OPTIMISED.options)["prefetch"][0] == "autotune"
    assert at(OPTIMISED.options, prefetch="1").pipeline.stages[-1] == PrefetchStage(buffer_size=1)


def test_files_are_read_at_once_in_turns() -> None:
    assert at(BASELINE.options, files_at_once="4").pipeline.stages[0] == ReadStage(
        mode="interleave", cycle_length=4, num_parallel_calls=4
    )
    back = at(OPTIMISED.options, files_at_once="1").pipeline.stages[0]
    assert back == ReadStage(shuffle_files=True)
    assert "16" not in values_of(BASELINE.options)["files at once"]  # there are eight files


def test_order_is_a_knob_only_where_it_may_change() -> None:
    assert "order" not in values_of(NAIVE)
    assert "order" in {knob.name for knob in find_knobs(NAIVE, may_reorder=True)}


def test_a_knob_or_value_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(OptionsError, match="no knob 'color'; it has files at once, map calls"):
        make_space(NAIVE, only={"color": ("red",)})
    with pytest.raises(OptionsError, match="prefetch cannot be '3'; it can be none, 1, 2"):
        make_space(NAIVE, only={"prefetch": ("3",)})


def test_a_pipeline_without_knobs_has_nothing_to_search() -> None:
    bare = RunOptions(
        workload=NAIVE.workload.model_copy(update={"examples_per_file": (100,)}),
        pipeline=PipelineOptions(
            stages=(ReadStage(shuffle_files=True), RepeatStage(), BatchStage(size=4), PrefetchToDeviceStage())
        ),
    )
    with pytest.raises(OptionsError, match="Nothing about this pipeline can be changed"):
        make_space(bare)


def test_a_space_that_is_too_large_says_what_to_do() -> None:
    knobs = find_knobs(set_options(NAIVE, [("workload.examples_per_file", "64x10")]))
    space = Space(NAIVE, knobs * 2)
    with pytest.raises(OptionsError, match="name fewer values of the knobs in `only`, or explore"):
        next(space.configurations())


def test_arguments_of_ones_own_workload_are_knobs_with_the_values_that_are_named() -> None:
    start = set_options(own_options("my.module:make", ""), [("workload.arguments", "calls=2, mode=fast")])
    space = make_space(start, only={"calls": ("1", "4"), "mode": ("fast", "slow"), "prefetch": ("8",)})
    found = {each.name: each.options.workload for each in space.configurations()}
    assert len(found) == space.size == 3 * 2 * 2
    changed = found["calls 4, mode slow, prefetch 8"]
    assert isinstance(changed, ModuleWorkload)
    assert changed.arguments == {"calls": 4, "mode": "slow", "prefetch": 8}
    assert found[START] == start.workload


@pytest.mark.parametrize("value", ["/a,b", "a b", "4", "true", 'say "no", then', 4, 0.5, True, None])
def test_an_argument_is_written_so_that_it_is_read_as_the_same(value: object) -> None:
    written = write_argument(value)
    space = make_space(own_options("my.module:make", ""), only={"path": (written,)})
    (found,) = [each.options.workload for each in space.configurations() if each.name != START]
    assert isinstance(found, ModuleWorkload)
    assert found.arguments == {"path": value}


@pytest.mark.parametrize(
    ("only", "said"),
    [
        ({"path": ("/a,b",)}, "path cannot be '/a,b'"),
        ({"path": ("/a,b=3",)}, "in double quotes"),
        ({"two words": ("1",)}, "is not a valid argument name"),
        ({"path": ("[1]",)}, "should be a number"),
    ],
)
def test_an_argument_that_cannot_be_read_is_refused(only: dict[str, tuple[str, ...]], said: str) -> None:
    with pytest.raises(OptionsError, match=said):
        make_space(own_options("my.module:make", ""), only=only)


def test_ones_own_workload_needs_values_to_try() -> None:
    with pytest.raises(OptionsError, match="--try calls=1,4,8"):
        make_space(own_options("my.module:make", ""))
