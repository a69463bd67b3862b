"""Hand-made model tables: nodes of tf.data's own model at a few moments."""

from dataclasses import dataclass

import pyarrow as pa

from pipeline_lab.runs.run_tables import MODEL

INTERLEAVE, ASYNC_INTERLEAVE, KNOWN, ASYNC_KNOWN, UNKNOWN = 1, 2, 3, 4, 5
MS = 1_000_000


@dataclass(frozen=True)
class Node:
    """One node at one sample; times in ms."""

    number: int
    parent: int
    name: str
    elements: int
    ms: float = 0.0
    node_class: int = KNOWN
    ratio: float = 1.0
    place: int = 0
    produced_bytes: int = 0
    buffered: int = 0
    buffered_bytes: int = 0
    parallelism: float | None = None
    tuned: bool | None = None
    limit: float | None = None


def model_table(*samples: tuple[float, list[Node]], origin_ns: int = 0) -> pa.Table:
    """Build a table of schema ``MODEL`` from (time in ms, nodes with parents first)."""
    rows = [
        {
            "time_ns": origin_ns + round(time_ms * MS),
            "node": node.number,
            "parent": node.parent,
            "place": node.place,
            "name": node.name,
            "node_class": node.node_class,
            "ratio": node.ratio,
            "elements": node.elements,
            "processing_ns": round(node.ms * MS),
            "bytes_consumed": 0,
            "bytes_produced": node.produced_bytes,
            "buffered_elements": node.buffered,
            "buffered_bytes": node.buffered_bytes,
            "parallelism": node.parallelism,
            "parallelism_tuned": node.tuned if node.parallelism is not None else None,
            "cycle_length": None,
            "buffer_limit": node.limit,
            "buffer_tuned": node.tuned if node.limit is not None else None,
            "cpu_budget": 2,
            "ram_budget_bytes": 1000,
        }
        for time_ms, nodes in samples
        for node in nodes
    ]
    return pa.Table.from_pylist(rows, schema=MODEL.schema)
