"""What the tests of captures do on the pretend GPU."""

import os

from pipeline_lab.capture import watch_script


def watch(folder: str, *, every_s: float, window_s: float) -> None:
    """Watch ``train.py`` in a folder, into the store beside it."""
    os.chdir(folder)
    watch_script.main(["--store", "store", "--every", str(every_s), "--seconds", str(window_s), "--quiet", "train.py"])
