"""Arms of one name are told apart by what they were told, and arms that were told the same are called so."""

from pipeline_lab.comparison.race_arms import describe_alike, name_arms
from pipeline_lab.options.race_options import RaceOptions
from pipeline_lab.options.run_options import RunOptions, set_options
from tests.support.presets import BASELINE, OPTIMISED, SYNTHETIC

SAME = SYNTHETIC.options


def changed(**settings: str) -> RunOptions:
    return set_options(SAME, [(path.replace("__", "."), value) for path, value in settings.items()])


def names(*arms: RunOptions) -> tuple[str, ...]:
    return name_arms(RaceOptions(arms=arms))


def test_arms_of_different_names_keep_them():
    assert names(BASELINE.options, OPTIMISED.options) == ("baseline", "optimised")


def test_arms_of_one_name_tell_their_own_value_of_what_differs():
    assert names(SAME, changed(pipeline__prefetch__buffer_size="8")) == (
        "synthetic (A: prefetch.buffer_size = 2)",
        "synthetic (B: prefetch.buffer_size = 8)",
    )
    assert names(SAME, BASELINE.options, changed(training__steps="7"))[1] == "baseline"


def test_a_value_that_is_not_there_is_none():
    first, second = names(SAME, changed(pipeline__map__num_parallel_calls="4"))
    assert (first, second) == (
        "synthetic (A: map.num_parallel_calls = none)",
        "synthetic (B: map.num_parallel_calls = 4)",
    )


def test_a_name_holds_two_differences_and_says_that_there_are_more():
    three = changed(
        pipeline__map__num_parallel_calls="4", pipeline__batch__size="8", pipeline__prefetch__buffer_size="3"
    )
    assert names(SAME, three)[1] == "synthetic (B: map.num_parallel_calls = 4, batch.size = 8, …)"


def test_a_stage_more_shows_by_its_own_options_and_another_order_by_the_stages():
    *stages, prefetch = SAME.pipeline.stages
    without = SAME.model_copy(update={"pipeline": SAME.pipeline.model_copy(update={"stages": tuple(stages)})})
    assert names(SAME, without)[1].startswith("synthetic (B: prefetch.buffer_size = none")
    read, repeat, *others = SAME.pipeline.stages
    turned = (*(read, *others[:-1]), repeat, prefetch)
    moved = SAME.model_copy(update={"pipeline": SAME.pipeline.model_copy(update={"stages": turned})})
    assert names(SAME, moved)[1] == "synthetic (B: stages = read → map → batch → re…)"


def test_arms_with_the_same_options_are_said_to_be_alike():
    twice = RaceOptions(arms=(SAME, SAME))
    assert name_arms(twice) == ("synthetic (A)", "synthetic (B)")
    assert describe_alike(twice) == (
        "synthetic (A) and synthetic (B) have the same options: what differs between them is chance."
    )
    renamed = SAME.model_copy(update={"name": "again"})
    assert describe_alike(RaceOptions(arms=(SAME, renamed))).startswith("synthetic and again have the same options")


def test_arms_that_differ_are_not_said_to_be_alike():
    assert describe_alike(RaceOptions(arms=(BASELINE.options, OPTIMISED.options))) == ""
