"""The words of the app, each in a sentence or two."""

import re

from pipeline_lab.analysis.metrics import METRICS, find_metric

_WORDS = {
    "Run": "One short training job that was launched here, or one log that was opened; everything about it lies in one folder.",
    "Step": "One update of the model: a batch comes in, the device computes, the weights change.",
    "Warm-up step": "One of the first steps, which compile and fill buffers; they are kept out of every average.",
    "Trace": "The list of everything that TensorFlow noted while its profiler was on, with start and length of each event.",
    "Window": "A stretch of a few steps with the profiler on. Between two windows it is off, which costs nothing.",
    "Capture gap": "The time between two windows, of which no trace exists.",
    "Host, device": "The machine's processor, and the accelerator that computes the steps. Without an accelerator the training ops on the "
    "processor stand in for it, and are called host compute.",
    "Idle gap": "A stretch in which the device does nothing. Its cause is the most telling thing that happened meanwhile.",
    "Stage": "One step of the tf.data pipeline, such as map, shuffle or batch.",
    "Written, ran": "The pipeline as your code says it, and what TensorFlow made of it: it fuses stages, makes some parallel and adds a prefetch.",
    "Critical path": "For every wait, the chain of stages and threads that the batch came through; it says which of them took the time.",
    "Buffer": "Elements that a stage has ready before they are asked for. A full one says that the stage is fast enough, an empty one that "
    "it is not.",
    "Thread pool": "The threads that run the functions of map stages; by default as many as there are cores. More parallel calls than "
    "threads have to queue.",
    "Hidden contention": "The pipeline slows the step down without a visible wait, because both use the same cores.",
    "Expected share": "A file's records divided by all records: the share of examples that an even sample takes from it.",
    "Bucket": "Examples of about one length, which make up batches of their own and so need little padding.",
    "Ragged batch": "A batch in which each example keeps its own length.",
    "Verdict": "The one sentence about what holds the job back, with its class, the stage and the cause.",
    "Confidence": "How sure the verdict is: lower for few steps, damaged traces, busy machines and unclear numbers.",
    "Arm, block, round": "In a race each pipeline is an arm; it runs in blocks of a few steps, and one block of every arm makes a round.",
    "Race": "Pipelines take turns in one process, in random order, until the difference is known. What the machine does "
    "meanwhile meets all of them; runs that were recorded separately differ by that as well.",
    "Interval": "The range in which the true ratio lies, with 95 % confidence unless you chose another, whenever the race was stopped.",
    "Undecided": "The race could not tell. It says how large a difference would have been seen.",
    "Drift": "A machine gets slower and faster by itself over minutes. Two runs recorded separately may differ by that alone.",
    "Baseline, candidate": "What is compared with, and what is compared.",
    "Salvaged": "Read from a damaged file as far as it goes, with the loss in bytes and events.",
}

GLOSSARY: dict[str, str] = _WORDS | {each.title: each.explanation for each in METRICS if each.text is not None}
"""Every word of the app, and every number that it shows by itself."""

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
"""What words of evidence begin with, and the number or the word that explains it; the first that fits."""


def explain(name: str) -> str | None:
    """Return what the number of that name means, or None where its name says it."""
    for each in METRICS:
        if name.lower() == each.title.lower():
            return each.explanation
    known = next((known for part, known in _NAMED if re.search(rf"\b{part}", name.lower())), "")
    return GLOSSARY[known] if known in GLOSSARY else find_metric(known).explanation if known else None
