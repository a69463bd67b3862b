"""Start and resume searches; each is a run of the store, conducted by its own process."""

import inspect
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.folders import runtime_folder
from pipeline_lab.options.race_options import read_race_options
from pipeline_lab.options.run_options import RunOptions, own_options, read_options
from pipeline_lab.options.tune_options import ScriptTuneOptions, TuneOptions
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.runs.launch.launchable import check_launchable, check_script
from pipeline_lab.runs.launch.launcher import wait_for_end
from pipeline_lab.runs.launch.runtime import module_command, start_process
from pipeline_lab.runs.record import RunKind, RunRecord, RunState
from pipeline_lab.runs.run_folder import RunFolder, read_record
from pipeline_lab.runs.store import RunStore, open_store
from pipeline_lab.tuning.search_result import Tuning, read_tuning
from pipeline_lab.tuning.space import make_space, write_argument
from pipeline_lab.tuning.trials import TrialLedger

WRAPPER = "pipeline_lab.worker.own_dataset:OwnDataset"
"""What calls a function that returns a bare dataset."""


def options_of_function(function: Callable[..., Any]) -> RunOptions:
    """Return the options that run a function which returns a dataset, or a class that makes a whole workload.

    Raises:
        OptionsError: Another process could not import it.
    """
    target, folder = find_target(function)
    if inspect.isclass(function):
        return own_options(target, folder)
    document = own_options(WRAPPER, folder).model_dump(mode="json")
    document["workload"]["arguments"] = {"function": target}
    return read_options(document | {"name": target})


def find_target(function: Callable[..., Any]) -> tuple[str, str]:
    """Return ``package.module:name`` of a function or class, and the folder in which Python finds the module.

    Raises:
        OptionsError: It is not at the top of a module that lies in a file.
    """
    name = getattr(function, "__qualname__", "")
    module = sys.modules.get(getattr(function, "__module__", "") or "")
    file = getattr(module, "__file__", None)
    if module is None or file is None or not name.isidentifier():
        raise OptionsError(
            f"{name or function!r} cannot be imported by the process that measures it; put it at the top of a Python file, "
            "not into a function or a notebook."
        )
    path = Path(file).resolve()
    if module.__name__ == "__main__":
        return f"{path.stem}:{name}", str(path.parent)
    depth = len(module.__name__.split(".")) - (path.name != "__init__.py")
    return f"{module.__name__}:{name}", str(path.parents[depth])


CLAIM_S = 20.0
"""Time for the process of a resumed search to put itself down as its supervisor."""


def launch_tune(store: RunStore, options: TuneOptions) -> RunFolder:
    """Start a search and return at once; it goes on when the caller ends.

    Raises:
        OptionsError: There is nothing to search around this start, or it is bound to fail.
        StoreError: The store cannot be written, or no process can be started.
    """
    check_tune(options)
    check_launchable(options.start)
    runtime_folder()  # its trouble is the caller's to see, before there is a run
    return _start(store.create(options, render_source(options.start)))


def launch_script_tune(store: RunStore, options: ScriptTuneOptions) -> RunFolder:
    """Start a search for better input of a script and return at once; it goes on when the caller ends.

    Raises:
        OptionsError: There is no such script, or what it is to be searched in recorded no training.
        StoreError: The store cannot be written, or no process can be started.
    """
    check_script(options)
    if options.run is not None:
        _check_recorded(RunFolder(Path(options.run)))
    runtime_folder()
    return _start(store.create(options, options.source))


def _check_recorded(folder: RunFolder) -> None:
    """Make sure that a run is the recording of a script.

    Raises:
        OptionsError: It is not; the text says what it is.
    """
    kind = read_record(folder).kind if folder.record.is_file() else None
    if kind is RunKind.TUNE:
        raise OptionsError(
            f"{folder.id} is a search; --run takes a recorded run of the script. To take what the search found, use --from {folder.id}."
        )
    if kind is RunKind.RACE or not folder.recipe.is_file():
        raise OptionsError(
            f"{folder.id} does not say how a script makes its batches; --run takes a run that `pipeline-lab watch` recorded of the script."
        )


def check_tune(options: TuneOptions) -> None:
    """Make sure that there is something to search, and that it can race.

    Raises:
        OptionsError: There is not; the text says why.
    """
    make_space(options.start, may_reorder=options.may_reorder, only=options.only)
    start = options.start.model_dump(mode="json")
    read_race_options({"arms": [start, start]})


def resume_tune(store: RunStore, run_id: str) -> RunFolder:
    """Resume a search that was killed, canceled or failed; what it measured is not measured again.

    The trial whose failure ended it is, and so is each that was canceled or lost.

    Raises:
        OptionsError: The run is not a search, or is over.
        StoreError: There is no such run, it is still running, or the store is locked.
    """
    store.check_unlocked()
    record = store.read(run_id)
    if record.kind is not RunKind.TUNE:
        raise OptionsError(f"Run {run_id} is a {record.kind.value}, not a search; only searches are resumed.")
    if record.status.state.is_live:
        raise StoreError(f"The search {run_id} is still running; follow it in the app, or cancel it first.")
    if record.status.state is RunState.DONE:
        raise OptionsError(f"The search {run_id} is over; start a new one from its winner.")
    folder = store.folder(run_id)
    folder.cancel_flag.unlink(missing_ok=True)
    folder.history.unlink(missing_ok=True)  # how it ended before is not how it will end
    ledger = TrialLedger(folder.trials)
    ledger.forget(_unanswered(ledger, store))
    store.update(run_id, _waiting)
    _start(folder)
    deadline_s = time.monotonic() + CLAIM_S
    while read_record(folder).status.state is RunState.LOST and time.monotonic() < deadline_s:
        time.sleep(0.1)
    return folder


def _unanswered(ledger: TrialLedger, store: RunStore) -> set[str]:
    """Return the keys of failed trials that say nothing of what they measured, and of the one that failed last."""
    lines = list(ledger.read().values())
    return {line.key for line in lines if line.failure and (line is lines[-1] or _was_stopped(store, line.run))}


def _was_stopped(store: RunStore, run_id: str) -> bool:
    try:
        return bool(run_id) and store.read(run_id).status.state in (RunState.CANCELLED, RunState.LOST)
    except StoreError:  # deleted
        return True


def _waiting(record: RunRecord) -> RunRecord:
    status = record.status.change(RunState.QUEUED, reason="", ended_s=None, exit_code=None, supervisor=None)
    return replace(record, status=status)


def _start(folder: RunFolder) -> RunFolder:
    start_process(folder, module_command("pipeline_lab.tuning", str(folder.path)))
    return folder


def resume(run_id: str, store: RunStore | None = None) -> Tuning:
    """Resume a search that was killed or canceled, and wait for its end.

    Raises:
        OptionsError: The run is not a search, or is over.
        RunFailedError: The search failed again.
    """
    folder = resume_tune(store or open_store(), run_id)
    wait_for_end(folder, "The search")
    return read_tuning(folder)


def write_values(only: object, *, are_arguments: bool) -> object:
    """Write the values of knobs as a command line would; anything but a mapping of lists is left for the options to refuse.

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
