"""``pipeline-lab what-if``: the predicted effect of changed options, or of changes to a watched script, from one run."""

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from pipeline_lab.cli.arguments import AddOption, SetOption, StoreOption, apply_settings
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
    run: Annotated[
        str,
        typer.Argument(
            help="A run that Pipeline Lab launched or watched: its id, its name, or `latest`.", show_default=False
        ),
    ],
    settings: SetOption = None,
    added: AddOption = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--change",
            help="A change of a watched script, such as 'train.py:41 num_parallel_calls=8', 'train.py:41 cache' or prefetch; may be repeated.",
            show_default=False,
        ),
    ] = None,
    do_race: Annotated[bool, typer.Option("--race", help="Race the change, and save the prediction with it.")] = False,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Predict the step time of changed options, or of a changed script, from one run, and what would limit it.

    Exits with code 5 and a reason if nothing can be predicted; --race measures anyway if the run's options are known.
    """
    from pipeline_lab.runs.run_folder import RunFolder
    from pipeline_lab.runs.store import find_path, name_of, open_store

    folder = RunFolder(find_path(run, store))
    if _predict_script(folder, changes or [], can_skip=do_race or bool(settings), as_json=as_json):
        return
    with reading(folder.id):
        from pipeline_lab.advice.forecasts import read_forecasts, score
        from pipeline_lab.advice.recorded_options import options_of
        from pipeline_lab.advice.what_if import measure_run, predict
        from pipeline_lab.errors import Unavailable

        recorded = options_of(folder)
        if not isinstance(recorded, Unavailable):
            changed = apply_settings(recorded, settings, store, added)
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
        from pipeline_lab.report.subjects.what_if_report import report_prediction

        results().print(render_terminal(report_prediction(measured, changed, prediction)))
        if do_race:
            show_report(_race(recorded, changed, measured, store))
        if forecasts := read_forecasts(open_store(store)):
            results().print(score(forecasts).sentence)
    if isinstance(prediction, Unavailable) and not do_race:
        _exit_unpredicted(name_of(folder.path), recorded, changed)


def _predict_script(folder: "RunFolder", texts: list[str], *, can_skip: bool, as_json: bool) -> bool:
    """Predict changes of a watched script: those that are named together, else every one that applies.

    Args:
        folder: Of the run.
        texts: What is changed.
        can_skip: Options are asked about.
        as_json: Print one object.

    Returns:
        Whether the run is one of a script.

    Raises:
        OptionsError: A change is none, or applies nowhere.
    """
    from pipeline_lab.advice.recorded_options import options_of
    from pipeline_lab.advice.script.script_edits import Assumed
    from pipeline_lab.advice.script.script_forecasts import (
        forecast_changes,
        measure_script,
        recipe_of,
        write_script_forecast,
    )
    from pipeline_lab.advice.script.script_layout import lay_out
    from pipeline_lab.advice.script.script_model import predict_change
    from pipeline_lab.analysis.diagnosis.saved import diagnose_saved
    from pipeline_lab.errors import Unavailable
    from pipeline_lab.pipeline.written_changes import parse_change
    from pipeline_lab.report.renderers.terminal import render_terminal
    from pipeline_lab.report.subjects.what_if_report import report_script_changes

    options, recipe = options_of(folder), recipe_of(folder)
    why = recipe.reason if isinstance(recipe, Unavailable) else ""
    if not isinstance(options, Unavailable) and options.is_assembled:
        why = "--change is for watched scripts; change the options of this run with --set PATH=VALUE."
    if texts and why:
        raise OptionsError(why)
    if why or isinstance(recipe, Unavailable) or (can_skip and not texts):
        return False
    chosen = [parse_change(recipe, text) for text in texts]
    with reading(folder.id):
        measured = measure_script(diagnose_saved(folder.path), recipe)
    if isinstance(measured, Unavailable):
        _exit_unmeasured(folder, measured, as_json=as_json)
    forecasts = forecast_changes(measured, chosen or None)
    together = predict_change(measured, [edit for each in chosen for edit in each.edits]) if chosen else None
    if as_json:
        print_json(write_script_forecast(folder.id, measured, forecasts, together))
    else:
        own = lay_out(measured, measured.stages, Assumed(measured.other_cores))
        results().print(render_terminal(report_script_changes(measured, forecasts, together, own)))
    if isinstance(together, Unavailable):
        raise typer.Exit(NOT_PREDICTED)
    return True


def _exit_unmeasured(folder: "RunFolder", why: "Unavailable", *, as_json: bool) -> NoReturn:
    from pipeline_lab.advice.forecasts import write_unpredicted
    from pipeline_lab.report.renderers.terminal import render_terminal
    from pipeline_lab.report.subjects.what_if_report import report_unpredicted

    if as_json:
        print_json(write_unpredicted(folder.id, why))
    else:
        results().print(render_terminal(report_unpredicted(why)))
    raise typer.Exit(NOT_PREDICTED)


def _exit_without_options(folder: "RunFolder", why: "Unavailable", store: "Path | None", *, as_json: bool) -> NoReturn:
    """Say why nothing can be predicted without options, and exit."""
    if as_json:
        from pipeline_lab.advice.forecasts import read_forecasts, write_forecasts, write_unpredicted
        from pipeline_lab.runs.store import open_store

        raced = write_forecasts(read_forecasts(open_store(store)))
        print_json({**write_unpredicted(folder.id, why), "raced_predictions": raced})
    else:
        from pipeline_lab.report.renderers.terminal import render_terminal
        from pipeline_lab.report.subjects.what_if_report import report_unpredicted

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
