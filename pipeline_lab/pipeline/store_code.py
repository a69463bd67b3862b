"""Lines of ``make_dataset`` for stages that keep elements, in memory or in ``cache_dir``."""

from typing import TypeAlias

from pipeline_lab.options.stages import CacheStage, SaveStage, SnapshotStage
from pipeline_lab.pipeline.code import INDENT, assign_call, quote

StoreStage: TypeAlias = CacheStage | SnapshotStage | SaveStage


def is_on_disk(stage: StoreStage) -> bool:
    return not isinstance(stage, CacheStage) or stage.where == "file"


def store_lines(stage: StoreStage, index: int) -> list[str]:
    """Write one such stage; its place in the pipeline tells its folder from those of others."""
    path = f'os.path.join(cache_dir, "stage-{index}")'
    if isinstance(stage, CacheStage):
        return [assign_call("dataset.cache", [] if stage.where == "memory" else [path])]
    if isinstance(stage, SnapshotStage):
        compression = _compression(stage.compression, default="auto")
        return [assign_call("dataset.snapshot", [path, *compression])]
    compression = _compression(stage.compression, default="none")
    return [
        f"{INDENT}saved = {path}",
        f"{INDENT}if not os.path.exists(saved):",
        f"{INDENT * 2}dataset.save({', '.join(['saved', *compression])})  # the whole data, before the first step",
        assign_call("tf.data.Dataset.load", ["saved", *compression]),
    ]


def _compression(chosen: str, default: str) -> list[str]:
    if chosen == default:
        return []
    return [f"compression={'None' if chosen == 'none' else quote(chosen.upper())}"]
