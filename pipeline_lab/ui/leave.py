"""What the app may launch: no code of the user's and no files of its machine, unless it was started so."""

from pipeline_lab.errors import OptionsError, StoreError
from pipeline_lab.options.run import RunOptions
from pipeline_lab.ui import own_code, server_paths


def check(options: RunOptions) -> RunOptions:
    """Return the options, if the app may launch them.

    Raises:
        OptionsError: They run code of the user's, or read files of this machine, and the app was started without leave.
    """
    own_code.check(options)
    if own_code.runs_code(options):
        return options  # code opens what it likes
    try:
        for place in ("pattern", "folder"):
            if text := getattr(options.workload, place, None):
                server_paths.check_pattern(text)
    except StoreError as error:
        raise OptionsError(str(error)) from None
    return options
