"""What the app may launch: no code of the user's and no files of its machine, unless it was started so."""

from pathlib import Path

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.ui import own_code, server_paths


def check(options: RunOptions) -> RunOptions:
    """Return the options, if the app may launch them.

    Raises:
        OptionsError: They run code of the user's, or read files of this machine, and the app was started without leave.
    """
    own_code.check(options)
    if own_code.runs_code(options):
        return options  # code opens what it likes
    workload = options.workload
    try:
        if pattern := getattr(workload, "pattern", None):
            server_paths.check_pattern(pattern)
        if folder := getattr(workload, "folder", None):
            server_paths.check(Path(folder).expanduser())  # as the job does, in a folder and not in a pattern
    except (StoreError, RuntimeError) as error:  # the latter for the home of somebody who is not there
        raise OptionsError(str(error)) from None
    return options
