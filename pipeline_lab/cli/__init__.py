"""The command line: parse, call the library, print.

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 failed (one sentence, no
traceback), 2 wrong usage.
"""

import sys


def main() -> None:
    """Run the command line."""
    from pipeline_lab.cli.application import build_app

    build_app(sys.argv[1:])()
