"""Let a search go on from a script, and write what it is to try as a command line would."""

from collections.abc import Iterable, Mapping

from pipeline_lab.errors import OptionsError
from pipeline_lab.runs.launch.launcher import wait_for_end
from pipeline_lab.runs.store import RunStore, open_store
from pipeline_lab.tuning.knobs import write_argument
from pipeline_lab.tuning.launching import resume_tune
from pipeline_lab.tuning.result import Tuning, read_tuning


def resume(run_id: str, store: RunStore | None = None) -> Tuning:
    """Let a search that was killed or cancelled go on to its end.

    Raises:
        OptionsError: The run is no search, or came to its end.
        RunFailedError: The search failed again.
    """
    folder = resume_tune(store or open_store(), run_id)
    wait_for_end(folder, "The search")
    return read_tuning(folder)


def write_values(only: object, *, are_arguments: bool) -> object:
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
