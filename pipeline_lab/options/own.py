"""Options around a workload of the user's own, whose code decides what else would be chosen here."""

from pipeline_lab.options.run import RunOptions, read_options


def own_options(target: str, folder: str, preset: str | None = None) -> RunOptions:
    """Return options that run ``package.module:function``.

    Args:
        target: The function or class.
        folder: Where Python looks for the module first.
        preset: One of the module's own ``PRESETS``.

    Raises:
        OptionsError: The target names no code.
    """
    workload = {"kind": "module", "target": target, "folder": folder, "preset": preset}
    return read_options({"name": preset or target, "workload": workload})


def with_preset(options: RunOptions, preset: str) -> RunOptions:
    """Return the same workload with another of its presets, under that name."""
    document = options.model_dump(mode="json")
    document["workload"]["preset"] = preset
    return read_options({**document, "name": preset})
