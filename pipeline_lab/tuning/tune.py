"""Search for a better pipeline from a script: launch, wait for the end, read what was found."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline_lab.comparison.racing import find_arm
from pipeline_lab.errors import OptionsError, RunFailedError
from pipeline_lab.options.run import RunOptions
from pipeline_lab.options.tune import read_tune_options
from pipeline_lab.runs.launcher import cancel, wait
from pipeline_lab.runs.record import RunState
from pipeline_lab.runs.store import RunFolder, RunStore, open_store
from pipeline_lab.tuning.knobs import write_argument
from pipeline_lab.tuning.launching import launch_tune, resume_tune
from pipeline_lab.tuning.own_functions import options_of_function
from pipeline_lab.tuning.result import Tuning, read_tuning
from pipeline_lab.workloads.module import ModuleWorkload


def tune(
    start: RunOptions | str | Path | Callable[..., Any], *, store: RunStore | None = None, **settings: object
) -> Tuning:
    """Search for a faster pipeline around a start; an interrupt cancels the search, which keeps its best.

    The model proposes and races decide; what the winner gained is measured against the start. In a notebook:

        from pipeline_lab import tune
        found = tune("baseline", budget_s=600)
        print(found.source)

    A function of your own that returns a dataset is called with each of the arguments that are to be tried, in a process
    that imports it from its file:

        def make_dataset(calls=1, prefetch=0):
            ...

        if __name__ == "__main__":
            print(tune(make_dataset, only={"calls": [1, 4, 8], "prefetch": [0, 2]}).sentence)

    Args:
        start: Options, a preset's name, a JSON file of options, a run's id, a function that returns a dataset, or a class
            as ``--workload`` takes it.
        store: Where to keep the search and its trials; None for the store that the command line uses too.
        settings: Fields of ``pipeline_lab.options.tune.TuneOptions`` beside the start: ``budget_s`` (s),
            ``max_configurations``, ``max_memory_mb``, ``max_threads``, ``explore``, ``ray`` and others.

    Raises:
        OptionsError: The start cannot be found, or there is nothing to search around it.
        RunFailedError: The search failed; the text says why, and what it found is kept.
    """
    opened = store or open_store()
    given = {name: value for name, value in settings.items() if value is not None}
    found = options_of_function(start) if callable(start) else find_arm(start, opened)
    if "only" in given:
        given["only"] = _as_words(given["only"], isinstance(found.workload, ModuleWorkload))
    options = read_tune_options({"start": found.model_dump(mode="json"), **given})
    return _wait(launch_tune(opened, options))


def resume(run_id: str, store: RunStore | None = None) -> Tuning:
    """Let a search that was killed or cancelled go on to its end.

    Raises:
        OptionsError: The run is no search, or came to its end.
        RunFailedError: The search failed again.
    """
    return _wait(resume_tune(store or open_store(), run_id))


def _as_words(only: object, are_arguments: bool) -> object:
    """Write the values of knobs as a command line would; what is no mapping of lists is for the options to refuse.

    A text stays a text where it is an argument of the user's own code; a lab's own knob is turned by bare words.
    """
    if not isinstance(only, Mapping):
        return only
    words: dict[object, object] = {}
    for knob, values in only.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            words[knob] = values
            continue
        try:
            words[knob] = [
                each if isinstance(each, str) and not are_arguments else write_argument(each) for each in values
            ]
        except TypeError as error:
            raise OptionsError(f"{knob} can be tried with numbers, texts, true, false and null: {error}.") from None
    return words


def _wait(folder: RunFolder) -> Tuning:
    try:
        record = wait(folder)
    except KeyboardInterrupt:
        cancel(folder)
        raise
    if record.status.state in (RunState.FAILED, RunState.LOST):
        raise RunFailedError(f"The search {folder.id} failed: {record.status.reason}")
    return read_tuning(folder)
