"""The app's terms, each in a sentence or two."""

import re

from pipeline_lab.analysis.metrics.metrics import HEADLINE, METRICS, find_metric

_WORDS = {
    "Run": "A training job that was launched or watched here, or a log that was opened; all its files are in one folder.",
    "Step": "One update of the model: a batch comes in, the device computes, the weights change.",
    "Warm-up step": "One of the first steps, which compile and fill buffers; averages leave them out.",
    "Trace": "The events that TensorFlow's profiler recorded, each with its start and duration.",
    "Window": "A few steps with the profiler on. Between windows it is off and costs nothing.",
    "Capture gap": "The time between two windows, for which no trace exists.",
    "Host, device": "The machine's CPU, and the accelerator that computes the steps. Without an accelerator, the training ops on the "
    "CPU take its place and are called host compute.",
    "Idle gap": "A period in which the device does nothing. Its cause is the most specific thing that happened meanwhile.",
    "Stage": "One step of the tf.data pipeline, such as map, shuffle or batch.",
    "Written, ran": "The pipeline as your code defines it, and as TensorFlow ran it: it fuses stages, parallelizes some and adds a prefetch.",
    "Critical path": "For each wait, the chain of stages and threads that produced the batch; it shows which of them took the time.",
    "Buffer": "Elements that a stage has ready before they are requested. A full buffer means the stage is fast enough; an empty one "
    "means it is not.",
    "Thread pool": "The threads that run the functions of map stages; by default as many as there are cores. Calls beyond the "
    "number of threads queue.",
    "Hidden contention": "The pipeline slows the step down without a visible wait because both use the same cores.",
    "Expected share": "A file's records divided by all records: its share of the examples under even sampling.",
    "Bucket": "Examples of similar length, batched together to need little padding.",
    "Ragged batch": "A batch whose examples keep their own lengths.",
    "Verdict": "One sentence about the job's bottleneck, with its class, stage and cause.",
    "Confidence": "How sure the verdict is: lower for few steps, damaged traces, busy machines and ambiguous numbers.",
    "Arm, block, round": "In a race each pipeline is an arm. It runs in blocks of a few steps; one block of every arm is a round.",
    "Race": "Pipelines run in alternating blocks in one process, in random order, until the difference is known. Machine noise affects all "
    "of them alike; separately recorded runs also differ by that noise.",
    "Interval": "The 95 % confidence interval of the true ratio (or another level that you chose), valid whenever the race stops.",
    "Undecided": "The race found no clear difference. It reports how large a difference it would have detected.",
    "Drift": "A machine's speed changes over minutes. Two separately recorded runs may differ by that alone.",
    "Baseline, candidate": "The run that others are compared with, and the others.",
    "Salvaged": "Read from a damaged file as far as possible; the loss is given in bytes and events.",
}

GLOSSARY: dict[str, str] = _WORDS | {
    each.title: each.explanation for each in METRICS if each.text is not None or each.key in HEADLINE
}
"""Every term of the app, and every number that it shows on its own."""

_NAMED = (
    ("exposed", "exposed_percent"),
    ("wait over all", "all_wait_percent"),
    ("wait", "wait_percent"),
    ("idle", "Idle gap"),
    ("total variation", "beyond_share_percent"),
    ("thread pool", "Thread pool"),
    ("interval", "Interval"),
    ("bytes lost", "Salvaged"),
    ("warm-up", "Warm-up step"),
    ("step", "Step"),
)
"""Beginnings of words in evidence, and the number or term that explains them; the first match counts."""


def define(name: str) -> str | None:
    """Return what the number of that name means, or None if its name is enough."""
    for each in METRICS:
        if name.lower() == each.title.lower():
            return each.explanation
    known = next((known for part, known in _NAMED if re.search(rf"\b{part}", name.lower())), "")
    return GLOSSARY[known] if known in GLOSSARY else find_metric(known).explanation if known else None
