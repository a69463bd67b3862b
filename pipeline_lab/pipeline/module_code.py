"""The source of a workload that a module of the user's makes: what is imported, and what it is called with."""

from collections.abc import Sequence

from pipeline_lab.stages.code import INDENT, quote
from pipeline_lab.workloads.module import ModuleWorkload

_DOCSTRING = '"""Build the dataset anew; which files it reads, and where it caches, is its own affair."""'


def module_source(workload: ModuleWorkload, ending: Sequence[str]) -> str:
    """Write the module that imports the user's; ``WORKLOAD`` is what their function returned.

    Args:
        workload: The user's own.
        ending: What comes after the stages.
    """
    arguments = [f"**{workload.module}.PRESETS[{quote(workload.preset)}]"] if workload.preset else []
    arguments += [f"{quote(name)}: {_literal(value)}" for name, value in workload.arguments.items()]
    lines = [f"# Dataset and training step of {workload.target}, as Pipeline Lab runs them."]
    if workload.folder:
        lines += ["import sys", "", f"sys.path.insert(0, {quote(workload.folder)})"]
    lines += ["", f"import {workload.module}"]
    if len(ending) > 1:  # more than the return: tf.data.Options
        lines.append("import tensorflow as tf")
    lines += ["", f"ARGUMENTS = {{{', '.join(arguments)}}}"]
    lines += [f"WORKLOAD = {workload.module}.{workload.function}(**ARGUMENTS)", "", ""]
    lines += ['def make_dataset(files=(), cache_dir="cache"):', f"{INDENT}{_DOCSTRING}"]
    lines += [f"{INDENT}dataset = WORKLOAD.make_dataset()", *ending]
    return "\n".join(lines) + "\n"


def _literal(value: object) -> str:
    return quote(value) if isinstance(value, str) else repr(value)
