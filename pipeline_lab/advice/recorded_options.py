"""The options that a run recorded, if any."""

from typing import TYPE_CHECKING

from pipeline_lab.errors import OptionsError, StoreError, Unavailable
from pipeline_lab.runs.record import RunKind
from pipeline_lab.runs.run_folder import RunFolder, read_record

if TYPE_CHECKING:
    from pipeline_lab.options.run_options import RunOptions

NO_OPTIONS = (
    "The log does not say what options its job ran with, so other options cannot be compared with them; run the job with "
    "`pipeline-lab run` to predict."
)
OF_SEVERAL = {
    RunKind.RACE: "A race has options for each of its arms, and predicts nothing itself; name one run.",
    RunKind.TUNE: "A search tries many options, and predicts nothing itself; name one of its runs.",
}


def options_of(folder: RunFolder) -> "RunOptions | Unavailable":
    """Return the options of a run, or why there are none: it is a log, a race, a search or another program's job."""
    if not folder.record.is_file():
        return Unavailable(NO_OPTIONS)
    try:
        record = read_record(folder)
        if record.kind in OF_SEVERAL:
            return Unavailable(OF_SEVERAL[record.kind])
        if record.kind is not RunKind.RUN or record.options is None:
            return Unavailable(NO_OPTIONS)
        from pipeline_lab.options.run_options import read_options  # loads pydantic, which logs need not wait for

        return read_options(record.options)
    except (OptionsError, StoreError) as error:
        return Unavailable(str(error))
