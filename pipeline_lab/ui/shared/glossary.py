"""The words of the app, each in a sentence or two."""

import re

GLOSSARY: dict[str, str] = {
    "Run": "One short training job that was launched here, or one log that was opened; everything about it lies in one folder.",
    "Step": "One update of the model: a batch comes in, the device computes, the weights change.",
    "Mean and median step": "The verdict speaks of the mean of the recorded steps, or of all measured ones where none was recorded. "
    "Median and 95th percentile are of all measured steps; a few long ones do not move the median.",
    "Warm-up step": "One of the first steps, which compile and fill buffers; they are kept out of every average.",
    "Trace": "The list of everything that TensorFlow noted while its profiler was on, with start and length of each event.",
    "Window": "A stretch of a few steps with the profiler on. Between two windows it is off, which costs nothing.",
    "Capture gap": "The time between two windows, of which no trace exists.",
    "Host, device": "The machine's processor, and the accelerator that computes the steps. Without an accelerator the training ops on the "
    "processor stand in for it, and are called host compute.",
    "Input wait": "Time in which the training step stands still because its next batch is not ready (any event of the family "
    "IteratorGetNext).",
    "Exposed stall": "The part of the input wait in which the device has nothing to do either. What a faster pipeline would win.",
    "Idle gap": "A stretch in which the device does nothing. Its cause is the most telling thing that happened meanwhile.",
    "Stage": "One step of the tf.data pipeline, such as map, shuffle or batch.",
    "Written, ran": "The pipeline as your code says it, and what TensorFlow made of it: it fuses stages, makes some parallel and adds a prefetch.",
    "Critical path": "For every wait, the chain of stages and threads that the batch came through; it says which of them took the time.",
    "Buffer": "Elements that a stage has ready before they are asked for. A full one says that the stage is fast enough, an empty one that "
    "it is not.",
    "Thread pool": "The threads that run the functions of map stages; by default as many as there are cores. More parallel calls than "
    "threads have to queue.",
    "G, D and P": "Three times that are measured in a run: G, the step alone on a batch that is held; D, the pipeline alone; P, the step as it "
    "ran with both, the median outside of windows.",
    "Utilisation": "G divided by P: how much of each step the device would need if its input cost nothing.",
    "Hidden contention": "The pipeline slows the step down without a visible wait, because both use the same cores.",
    "Expected share": "A file's records divided by all records: the share of examples that an even sample takes from it.",
    "Samples beyond their share": "How much of what was read would have to come from other files to be even (total variation). Chance alone "
    "gives a little, which is shown beside it.",
    "Coverage": "Different records that were used, divided by all records.",
    "Entropy of a batch": "How many files a batch mixes, in bits: 0 is one file, 1 two equal ones, 2 four.",
    "Padding": "What is added to short examples so that all of a batch are as long as its longest. It is sent and computed for nothing.",
    "Bucket": "Examples of about one length, which make up batches of their own and so need little padding.",
    "Ragged batch": "A batch in which each example keeps its own length.",
    "Verdict": "The one sentence about what holds the job back, with its class, the stage and the cause.",
    "Confidence": "How sure the verdict is: lower for few steps, damaged traces, busy machines and unclear numbers.",
    "Arm, block, round": "In a race each pipeline is an arm; it runs in blocks of a few steps, and one block of every arm makes a round.",
    "Race": "Pipelines take turns in one process, in random order, until the difference is known. What the machine does "
    "meanwhile meets all of them; runs that were recorded apart differ by that as well.",
    "Interval": "The range in which the true ratio lies, with a chance of 95 % unless you chose another, whenever the race was stopped.",
    "Undecided": "The race could not tell. It says how large a difference would have been seen.",
    "Drift": "A machine gets slower and faster by itself over minutes. Two runs recorded apart may differ by that alone.",
    "Baseline, candidate": "What is compared with, and what is compared.",
    "Salvaged": "Read from a damaged file as far as it goes, with the loss in bytes and events.",
}

_NAMED = (
    ("exposed", "Exposed stall"),
    ("wait", "Input wait"),
    ("idle", "Idle gap"),
    ("utilisation", "Utilisation"),
    ("held batch", "G, D and P"),
    ("pipeline alone", "G, D and P"),
    ("step as it ran", "G, D and P"),
    ("mean step", "Mean and median step"),
    ("step time", "Mean and median step"),
    ("beyond their file", "Samples beyond their share"),
    ("total variation", "Samples beyond their share"),
    ("entropy", "Entropy of a batch"),
    ("records used", "Coverage"),
    ("padding", "Padding"),
    ("thread pool", "Thread pool"),
    ("interval", "Interval"),
    ("bytes lost", "Salvaged"),
    ("warm-up", "Warm-up step"),
    ("step", "Step"),
)
"""What words of a number's name begin with, and the word that explains it; the first that fits."""


def explain(name: str) -> str | None:
    """Return what the number of that name means, or None where its name says it."""
    return next((GLOSSARY[word] for part, word in _NAMED if re.search(rf"\b{part}", name.lower())), None)
