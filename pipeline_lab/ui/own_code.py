"""Workloads that run Python code of the user's: the app launches them only where it was started with leave to.

The form and a run's options name the code, so whoever reaches the app could otherwise run anything that Python can
import. No link and no opened file may name code, allowed or not.
"""

import os

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.workloads.module import ModuleWorkload

VARIABLE = "PIPELINE_LAB_ALLOW_CODE"


def is_allowed() -> bool:
    return os.environ.get(VARIABLE, "0") not in ("", "0")


def runs_code(options: RunOptions) -> bool:
    return isinstance(options.workload, ModuleWorkload)


def check_brought(options: RunOptions) -> RunOptions:
    """Return options that a link or a file brought, if they name no code.

    Raises:
        OptionsError: They do.
    """
    if isinstance(options.workload, ModuleWorkload):
        raise OptionsError(
            f"They run {options.workload.target}, and code cannot come by a link or a file; choose the workload `module` "
            "in the form and name it there."
        )
    return options


def check(options: RunOptions) -> None:
    """Refuse options that the app may not launch.

    Raises:
        OptionsError: They run code of the user's, and the app was started without leave.
    """
    if isinstance(options.workload, ModuleWorkload) and not is_allowed():
        raise OptionsError(
            f"{options.workload.target} is code of your own, which the app only runs when it was started so: "
            f"pipeline-lab app --allow-code, or {VARIABLE}=1. The command line runs it too."
        )
