"""What a workload writes into the rendered module, beside the stages that are the same for every workload.

Each ``*_code`` module of a workload returns one; :mod:`pipeline_lab.pipeline.source` puts it into its place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline_lab.stages.code import Code


@dataclass(frozen=True)
class WorkloadSource:
    """A workload's part of the module.

    Attributes:
        about: Comments at the top of the module: what its elements are.
        code: Imports, constants and functions.
        written: What writes the lines of a stage in the workload's own way, by the stage's name; ``read`` among them.
        functions: What ``map`` calls for a stage, by the stage's name; a function of the same name where none is given.
        over: What the pipeline is built over.
    """

    about: tuple[str, ...]
    code: Code
    written: Mapping[str, Callable[[Any], Sequence[str]]]
    functions: Mapping[str, str] = field(default_factory=dict)
    over: str = "over TFRecord files"
