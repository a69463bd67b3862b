"""What every workload declares: its stages, its data, what its training step can do, and what the form needs.

A workload is one module here (:class:`Workload` with its options) and one in :mod:`pipeline_lab.worker.workloads`, which
makes its data and its training step with TensorFlow. :mod:`pipeline_lab.workloads.registry` lists them.
"""

from typing import ClassVar

from pipeline_lab.fields import Options

FLOAT_BYTES = 4
ID_BYTES = 8
LABEL_AND_ID_BYTES = 16


class Workload(Options):
    """What a job reads and trains on; what a subclass does not declare is as most workloads have it."""

    kind: str = ""

    own_stages: ClassVar[tuple[str, ...]] = ()
    """Stages that call a function of this workload, in the order in which its pipeline needs them."""
    optional_stages: ClassVar[frozenset[str]] = frozenset()
    """Those of them that it does well without."""
    is_code: ClassVar[bool] = False
    """The user's own code makes dataset and step; there are no stages to choose."""
    has_files: ClassVar[bool] = True
    """It reads files that can be held out, dropped from the page cache and simulated."""
    step_options: ClassVar[frozenset[str]] = frozenset()
    """Training options that its step knows and those of other workloads do not: precision, xla, accumulate, replicas."""

    @property
    def file_sizes(self) -> tuple[int, ...] | None:
        """Examples in each file or generator; None for the user's own data, which a job counts when it starts."""
        return None

    @property
    def needs_probe(self) -> bool:
        """Say whether its records carry no id, so that only a rewritten reader can tell their origin."""
        return False

    @property
    def has_varied_lengths(self) -> bool:
        """Say whether its examples differ in length."""
        return False


def check_folder(data: str, folder: str | None) -> None:
    """Refuse a folder without ``data = folder``, and the other way round."""
    if data == "folder" and not folder:
        raise ValueError("data = folder needs a folder with a subfolder for each class")
    if data != "folder" and folder:
        raise ValueError(f"a folder only applies to data = folder, not to data = {data}; remove one of them")
    if folder and any(letter in folder for letter in "*?["):
        raise ValueError("TensorFlow takes *, ? and [ in a path for a pattern; name a folder without them")
