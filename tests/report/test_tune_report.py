import html
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline_lab.comparison.differences import flatten_options
from pipeline_lab.errors import ComparisonError, Unavailable
from pipeline_lab.figures.comparing.chart_lists import TUNE_CHARTS
from pipeline_lab.figures.comparing.tune_charts import search_frontier, search_history, search_importance, search_places
from pipeline_lab.figures.theme import caption_of
from pipeline_lab.report.content import Picture, Table
from pipeline_lab.report.formats import FORMATS, write_report
from pipeline_lab.report.report_on import report_on
from pipeline_lab.report.subjects.tune_report import TuneReport
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunStore
from pipeline_lab.tuning.history import Raced, SearchEnded, rank_configurations
from pipeline_lab.tuning.importance import find_effects
from pipeline_lab.tuning.opened_search import open_with_searches
from pipeline_lab.tuning.search_result import Tuning, change_words, interval_words, read_tuning
from pipeline_lab.tuning.space import START
from tests.support.recorded import recorded
from tests.support.worlds import make_search


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Tuning:
    return read_tuning(make_search(RunStore(tmp_path_factory.mktemp("store"))))


@pytest.mark.slow
def test_a_report_has_the_winner_its_source_and_every_step(found: Tuning) -> None:
    content = TuneReport(found).content()
    assert content.answer.label == "faster"
    assert content.answer.sentences[0].startswith("“map calls 4, pool threads 4, prefetch 2” takes 76")
    search, winner, tried, trials = content.sections
    assert len(tried.blocks) == len(found.steps)
    assert any(getattr(block, "text", "") == found.source for block in winner.blocks)
    *charts, table = search.blocks
    assert [chart.name for chart in charts if isinstance(chart, Picture)] == [chart.name for chart in TUNE_CHARTS]
    assert isinstance(trials.blocks[0], Table)
    assert isinstance(table, Table)
    assert [row[0] for row in trials.blocks[0].rows] == [trial.run for trial in found.trials]
    assert {row[0] for row in table.rows} >= {found.winner_name, "start"}


@pytest.mark.parametrize(
    ("measured", "label"),
    [
        ({"ratio": None, "low": None, "high": None}, "leads, not raced"),
        ({"low": None, "high": None}, "undecided"),
        ({"high": 1.0}, "undecided"),
        ({"high": 0.999}, "faster"),
    ],
)
def test_only_an_interval_below_one_says_faster(found: Tuning, measured: dict[str, float | None], label: str) -> None:
    *steps, ended = found.steps
    answer = TuneReport(replace(found, steps=(*steps, replace(ended, **measured)))).content().answer
    assert (answer.label, answer.tone) == (label, "good" if label == "faster" else "neutral")


def test_a_search_that_had_no_time_to_race_is_not_said_to_have_found_nothing_better(found: Tuning) -> None:
    *steps, ended = found.steps
    assert isinstance(ended, SearchEnded)
    unmeasured = replace(ended, winner=START, challenger=START, ratio=None, low=None, high=None, predicted=1.0)
    for sentence, label in (
        ("Nothing was raced. The budget was too small.", "nothing raced"),
        ("The start stays.", "nothing better"),
    ):
        answer = TuneReport(replace(found, steps=(*steps, replace(unmeasured, sentence=sentence)))).content().answer
        assert answer.label == label
        assert [one.name for one in answer.evidence] == ["Configurations measured"], (
            "nothing was predicted of the start"
        )


def test_a_choice_of_the_model_that_was_not_raced_is_called_so(tmp_path: Path) -> None:
    found = read_tuning(make_search(RunStore(tmp_path), RunState.CANCELLED, stops_after=1))
    content = TuneReport(found).content()
    assert content.answer.label == "model's choice, not raced"
    assert "is only the model's choice: it did not race" in content.answer.sentences[0]
    (choice,) = (section for section in content.sections if section.title == "The model's choice")
    assert getattr(choice.blocks[0], "text", "") == found.race_command
    drawn = search_places(found)
    assert isinstance(drawn, Unavailable)
    assert drawn.reason.startswith("Nothing was raced")


@pytest.mark.parametrize(
    "report_format", [each for each in FORMATS if each.name not in ("png", "svg")], ids=lambda each: each.name
)
def test_a_search_is_exported_in_every_format(found: Tuning, tmp_path: Path, report_format: object) -> None:
    assert write_report(report_on([found]), report_format, tmp_path / "report").exists()


def test_tables_have_a_row_per_race_and_configuration_and_per_trial(found: Tuning) -> None:
    tables = TuneReport(found).tables()
    assert tables["trials"].num_rows == len(found.trials)
    assert set(tables["standings"]["configuration"].to_pylist()) >= {found.winner_name}


def test_places_are_on_one_scale_across_races(found: Tuning) -> None:
    placed = rank_configurations(found.steps)
    places = {place.configuration: place for place in placed.rows}
    assert (placed.reference, places["start"].ratio) == ("start", 1.0)
    best = 10 / 42  # the step alone over the naive one
    fast = [place for place in places.values() if place.ratio is not None and place.ratio < 1.1 * best]
    assert places[found.winner_name] in fast
    assert all(place.predicted == pytest.approx(best) for place in fast)


def test_until_one_met_the_start_times_are_over_the_first_leaders(found: Tuning) -> None:
    placed = rank_configurations([step for step in found.steps if not isinstance(step, SearchEnded)])
    (first, *_) = (step for step in found.steps if isinstance(step, Raced))
    assert placed.reference == first.leader
    assert {place.configuration: place.ratio for place in placed.rows}[first.leader] == 1.0
    assert rank_configurations(()).rows == ()


def outcomes(tuning: Tuning) -> set[str]:
    search, *_ = TuneReport(tuning).content().sections
    return {row[-1] for block in search.blocks if isinstance(block, Table) for row in block.rows}


def test_nothing_is_in_the_race_any_more_when_the_search_is_over(found: Tuning) -> None:
    raced = next(number for number, step in enumerate(found.steps, 1) if isinstance(step, Raced))
    over = replace(found, steps=found.steps[:raced])
    goes_on = replace(over, record=replace(found.record, status=found.record.status.change(RunState.RUNNING)))
    assert outcomes(goes_on) - outcomes(over) == {"still in the race"}
    assert outcomes(over) - outcomes(goes_on) == {"left undecided"}


def test_the_history_keeps_the_best_so_far(found: Tuning) -> None:
    figure = search_history(found)
    assert not isinstance(figure, Unavailable)
    times, best = figure.data
    assert best.y.tolist() == [min(times.y[: number + 1]) for number in range(len(times.y))]
    assert times.y[0] == 1.0, "the start"
    assert found.ended is not None
    other = next(name for name in reversed(times.hovertext) if html.unescape(name) != found.ended.winner)
    chosen = replace(found.ended, winner=html.unescape(other))
    told = search_history(replace(found, steps=(*found.steps[:-1], chosen)))
    assert not isinstance(told, Unavailable)
    place = len(times.hovertext) - list(reversed(times.hovertext)).index(other)
    assert f"came as number {place}:" in caption_of(told), "a race chose it, though another one is as fast"


def test_what_mattered_is_what_the_fast_ones_share(found: Tuning) -> None:
    figure = search_importance(found)
    assert not isinstance(figure, Unavailable)
    (bars,) = figure.data
    assert sorted(bars.x, reverse=True) == list(bars.x)
    assert 0 < bars.x[0] <= 100
    assert any("num_parallel_calls" in name or "buffer_size" in name or "prefetch" in name for name in bars.y)
    effects = find_effects(found)
    assert not isinstance(effects, Unavailable)
    won = flatten_options(found.winner.model_dump(mode="json"))
    for effect in effects:  # what is said of the fastest is true of the winner, option by option
        assert effect.best == ", ".join(won.get(path, "–") for path in effect.paths)


def test_the_frontier_gets_faster_with_every_cost(found: Tuning) -> None:
    figure = search_frontier(found)
    assert not isinstance(figure, Unavailable)
    edge, points = figure.data
    assert list(edge.x) == sorted(edge.x)
    assert list(edge.y) == sorted(edge.y, reverse=True)
    assert min(edge.y) == min(points.y)


def test_a_time_is_told_as_less_or_more() -> None:
    assert (change_words(0.75), change_words(1.2), change_words(None)) == ("25 % less", "20 % more", "–")
    assert interval_words(0.7, 0.8) == "20 % to 30 % less"
    assert interval_words(0.9, 1.1) == "10 % more to 10 % less"
    assert interval_words(None, 1.1) == interval_words(0.4, 0.4) == "–"


def test_a_place_without_an_interval_is_drawn_apart(found: Tuning) -> None:
    place = next(step for step in found.steps if isinstance(step, Raced))
    unsure = replace(place, standings=tuple(replace(each, low=None, high=None) for each in place.standings[1:]))
    steps = (replace(place, standings=place.standings[:1]), unsure)
    figure = search_places(replace(found, steps=steps))
    assert not isinstance(figure, Unavailable)
    drawn = {trace.name: trace for trace in figure.data}
    assert len(drawn["raced, with its interval"].y) == 1
    hollow = drawn["raced, no interval yet"]
    assert len(hollow.y) == len(unsure.standings)
    assert hollow.marker.symbol == "circle-open"
    assert hollow.error_x.array is None


def test_a_search_holds_its_own_comparison(found: Tuning) -> None:
    with pytest.raises(ComparisonError, match="A race or a search holds its own comparison"):
        report_on([recorded(), found])


def test_a_search_is_opened_by_its_id_or_folder(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    folder = make_search(store, stops_after=1)
    assert isinstance(open_with_searches(folder.id, tmp_path), Tuning)
    assert isinstance(open_with_searches(folder.path), Tuning)
