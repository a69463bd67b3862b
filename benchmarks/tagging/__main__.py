"""What it costs to carry file and record of each example of your own records: ``python -m benchmarks.tagging``.

The pipeline is the one that a run of the `records` workload executes, written with and without the sample probe. Both
are drained in one process, in blocks of batches that take turns in an order drawn by chance. Every record is small, so
that the cost is as large a share as it gets; processor time counts, since others on the machine hardly change it.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline_lab.options.run_options import RunOptions, read_options
from pipeline_lab.pipeline.source import render_source
from pipeline_lab.statistics.paired import log_ratios, paired_ratio
from pipeline_lab.statistics.schedule import draw_order
from pipeline_lab.units import format_bytes
from pipeline_lab.worker.prepare.user_code import import_pipeline

FILES, RECORDS, VALUES = 8, 4000, 16
BATCH = 128
WARM_BATCHES = 20
NS_PER_S = 1e9

Stage = dict[str, Any]
READ: Stage = {"stage": "read"}
INTERLEAVED: Stage = {"stage": "read", "mode": "interleave", "cycle_length": 4, "num_parallel_calls": 2}
REPEAT: Stage = {"stage": "repeat"}
BATCHED: Stage = {"stage": "batch", "size": BATCH}
PREFETCH: Stage = {"stage": "prefetch", "buffer_size": 2}
PIPELINES: dict[str, list[Stage]] = {
    "file after file, parse one by one": [READ, REPEAT, {"stage": "parse"}, BATCHED],
    "file after file, parse batches": [READ, REPEAT, BATCHED, {"stage": "parse"}],
    "interleaved, parse batches in parallel": [
        INTERLEAVED,
        REPEAT,
        BATCHED,
        {"stage": "parse", "num_parallel_calls": 2},
        PREFETCH,
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tagging", description=__doc__)
    parser.add_argument("--pairs", type=int, default=20, help="pairs of blocks for each pipeline")
    parser.add_argument("--batches", type=int, default=100, help=f"batches of {BATCH} examples in a block")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder))
        size = format_bytes(Path(files[0]).stat().st_size / RECORDS)
        print(f"{FILES} files × {RECORDS} records of {size}; {chosen.pairs} pairs of {chosen.batches} batches")
        print(f"{'':<40}{'plain':>10}{'tagged':>10}{'more':>10}  processor time; (wall time)")
        for name, stages in PIPELINES.items():
            tell(name, *measure(Path(folder), files, stages, chosen.pairs, chosen.batches), chosen.batches * BATCH)


def write_files(folder: Path) -> list[str]:
    """Write records of a few numbers each and return their files."""
    generator, files = np.random.default_rng(1), []
    for number in range(FILES):
        path = str(folder / f"part-{number}.tfrecord")
        files.append(path)
        with tf.io.TFRecordWriter(path) as writer:
            for record in range(RECORDS):
                values = tf.train.FloatList(value=generator.random(VALUES))
                label = tf.train.Int64List(value=[record % 10])
                feature = {"values": tf.train.Feature(float_list=values), "label": tf.train.Feature(int64_list=label)}
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    return files


def measure(folder: Path, files: list[str], stages: list[Stage], pairs: int, batches: int) -> tuple[Any, Any]:
    """Drain both pipelines by turns.

    Returns:
        Processor and wall time of each block, s; shape (pairs, 2) each: without tags, with them.
    """
    options = read_options(
        {
            "workload": {
                "kind": "records",
                "pattern": str(folder / "*.tfrecord"),
                "features": f"values:float32[{VALUES}], label:int64",
                "label": "label",
            },
            "pipeline": {"stages": stages},
        }
    )
    arms = [open_pipeline(folder, options, files, probe=probe) for probe in (False, True)]
    for arm in arms:
        drain(arm, WARM_BATCHES)
    cpu_s, wall_s = np.zeros((pairs, 2)), np.zeros((pairs, 2))
    for pair in range(pairs):
        for number in draw_order(2, pair, seed=1):
            cpu_s[pair, number], wall_s[pair, number] = drain(arms[number], batches)
    return cpu_s, wall_s


def open_pipeline(folder: Path, options: RunOptions, files: list[str], *, probe: bool) -> Iterator[Any]:
    source = folder / f"pipeline-{'tagged' if probe else 'plain'}-{time.monotonic_ns()}.py"
    source.write_text(render_source(options, probe=probe), encoding="utf-8")
    return iter(import_pipeline(source).make_dataset(files, str(folder)))


def drain(batches: Iterator[Any], count: int) -> tuple[float, float]:
    """Take batches; return processor and wall time, s."""
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    for _ in range(count):
        next(batches)
    return time.process_time() - cpu_s, time.perf_counter() - wall_s


def tell(name: str, cpu_s: Any, wall_s: Any, records: int) -> None:
    plain, tagged = np.median(cpu_s, axis=0) / records * NS_PER_S / 1e3
    columns = f"{plain:>7.2f} µs{tagged:>7.2f} µs{tagged - plain:>7.2f} µs"
    print(f"{name:<40}{columns}  {_percent(cpu_s)}; ({_percent(wall_s)})", flush=True)


def _percent(seconds: Any) -> str:
    ratio = paired_ratio(log_ratios(seconds[:, 0], seconds[:, 1]))
    low, middle, high = (100 * (each - 1) for each in (ratio.low, ratio.ratio, ratio.high))
    return f"{middle:+.1f} % ({low:+.1f} to {high:+.1f} %)"


if __name__ == "__main__":
    main()
