"""``pipeline-lab what-if``: the predicted effect of changed options, from one run."""

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from pipeline_lab.cli.arguments import SetOption, StoreOption, apply_settings
from pipeline_lab.cli.output import print_json, reading, results, say, show_report
from pipeline_lab.errors import OptionsError

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline_lab.advice.measured_run import Measured
    from pipeline_lab.comparison.race_result import Race
    from pipeline_lab.errors import Unavailable
    from pipeline_lab.options.run_options import RunOptions
    from pipeline_lab.runs.run_folder import RunFolder

NOT_PREDICTED = 5


def what_if(
    run: Annotated[str, typer.Argument(help="The id of a run that Pipeline Lab launched.", show_default=False)],
    settings: SetOption = None,
    do_race: Annotated[bool, typer.Option("--race", help="Race the change, and save the prediction with it.")] = False,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Predict the step time of changed options from one run, and what would limit it.

    Exits with code 5 and a reason if nothing can be predicted; --race measures anyway if the run's options are known.
    """
    from pipeline_lab.runs.run_folder import RunFolder
    from pipeline_lab.runs.store import find_path, name_of, open_store

    folder = RunFolder(find_path(run, store))
    with reading(folder.id):
        from pipeline_lab.advice.forecasts import read_forecasts, score
        from pipeline_lab.advice.recorded_options import options_of
        from pipeline_lab.advice.what_if import measure_run, predict
        from pipeline_lab.errors import Unavailable

        recorded = options_of(folder)
        if not isinstance(recorded, Unavailable):
            changed = apply_settings(recorded, settings, store)
            measured = measure_run(folder)
    if isinstance(recorded, Unavailable):
        if do_race:
            raise OptionsError(recorded.reason)
        _exit_without_options(folder, recorded, store, as_json=as_json)
    prediction = measured if isinstance(measured, Unavailable) else predict(measured, changed)
    if as_json:
        from pipeline_lab.advice.forecasts import write_forecasts, write_prediction

        document = write_prediction(folder.id, measured, changed, prediction)
        raced = {"race": _race(recorded, changed, measured, store).to_json()} if do_race else {}
        forecasts = read_forecasts(open_store(store))
        print_json({**document, **raced, "raced_predictions": write_forecasts(forecasts)})
    else:
        from pipeline_lab.report.renderers.terminal import render_terminal
        from pipeline_lab.report.what_if_report import report_prediction

        results().print(render_terminal(report_prediction(measured, changed, prediction)))
        if do_race:
            show_report(_race(recorded, changed, measured, store))
        if forecasts := read_forecasts(open_store(store)):
            results().print(score(forecasts).sentence)
    if isinstance(prediction, Unavailable) and not do_race:
        _exit_unpredicted(name_of(folder.path), recorded, changed)


def _exit_without_options(folder: "RunFolder", why: "Unavailable", store: "Path | None", *, as_json: bool) -> NoReturn:
    """Say why nothing can be predicted without options, and exit."""
    if as_json:
        from pipeline_lab.advice.forecasts import read_forecasts, write_forecasts, write_unpredicted
        from pipeline_lab.runs.store import open_store

        raced = write_forecasts(read_forecasts(open_store(store)))
        print_json({**write_unpredicted(folder.id, why), "raced_predictions": raced})
    else:
        from pipeline_lab.report.renderers.terminal import render_terminal
        from pipeline_lab.report.what_if_report import report_unpredicted

        results().print(render_terminal(report_unpredicted(why)))
    raise typer.Exit(NOT_PREDICTED)


def _exit_unpredicted(run: str, recorded: "RunOptions", changed: "RunOptions") -> NoReturn:
    """Name the command that measures what could not be predicted, and exit."""
    from pipeline_lab.advice.option_changes import find_settings, write_command

    if settings := find_settings(recorded, changed):
        say("A race measures it: {}", write_command(run, settings))
    raise typer.Exit(NOT_PREDICTED)


def _race(
    recorded: "RunOptions", changed: "RunOptions", measured: "Measured | Unavailable", store: "Path | None"
) -> "Race":
    """Race the change, predicted or not."""
    from pipeline_lab.advice.forecasts import plan_race_of
    from pipeline_lab.cli.commands.race import check_end
    from pipeline_lab.cli.following import follow_run, stop_requests
    from pipeline_lab.comparison.race_result import read_race
    from pipeline_lab.errors import Unavailable
    from pipeline_lab.runs.launch.launcher import launch
    from pipeline_lab.runs.store import open_store

    known = None if isinstance(measured, Unavailable) else measured
    with stop_requests() as requests:
        folder = launch(open_store(store), plan_race_of(recorded, [changed], known))
        record = follow_run(folder, requests)
    check_end(folder, record)
    return read_race(folder)
