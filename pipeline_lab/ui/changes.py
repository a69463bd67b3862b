"""Whether the people who reach the app may launch, open, change and delete, or only look.

The app knows nobody by name. Where it answers this machine alone, whoever reaches it could do all that anyway; others
only look, unless whoever started the app lets them do more.
"""

import os

from pipeline_lab.ui import server_paths

VARIABLE = "PIPELINE_LAB_ALLOW_CHANGES"
_LOOK_ONLY = (
    "This app only shows runs, because it answers other machines too; who started it can let everybody launch, open and "
    f"delete with {VARIABLE}=1."
)


def problem() -> str:
    """Say why nothing may be changed; empty where all may be."""
    allowed = os.environ.get(VARIABLE)
    if allowed is None:
        return "" if server_paths.is_local() else _LOOK_ONLY
    return "" if allowed not in ("", "0") else f"This app only shows runs; it was started with {VARIABLE}=0."
