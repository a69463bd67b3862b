"""What to try next for each verdict in words: for logs, whose options nobody knows, and for what no option cures."""

from pipeline_lab.analysis.calibration import Calibration
from pipeline_lab.analysis.input_causes import GENERATOR
from pipeline_lab.analysis.verdict import LEAST_GAIN_PERCENT, NO_GAIN, Suggestion, VerdictClass
from pipeline_lab.errors import Unavailable

TOO_SMALL = Unavailable("The gain is smaller than the prediction's own error.")


def find_cures(
    kind: VerdictClass,
    cause: str | None,
    stage: str | None,
    lost_percent: float,
    calibration: Calibration | Unavailable,
    overlap_percent: float | None = None,
) -> tuple[Suggestion, ...]:
    """Return what to try, the most promising first.

    Args:
        kind: The verdict's class.
        cause: Its cause, if known.
        stage: The blamed stage's iterator, if known.
        lost_percent: Share of the step that the class stands for; what a perfect cure would gain.
        calibration: Step and pipeline alone, if they were timed.
        overlap_percent: Share of the step that working ahead would save at best; None where a stage does so already, or
            nobody knows.
    """
    if kind is VerdictClass.INPUT_BOUND:
        return _for_input(cause, stage, calibration, overlap_percent)
    if kind is VerdictClass.IDLE_OTHER and cause == "checkpoint":
        return (
            Suggestion("Write checkpoints less often, or asynchronously.", "Training stops while they are written."),
        )
    if kind is VerdictClass.IDLE_OTHER and cause == "collective":
        return (
            Suggestion(
                "Give the devices or workers equal work, or exchange less: a larger batch for each, values of half the size "
                "(mixed precision), fewer workers; where only some were recorded, record all of them at the same steps.",
                "A step ends when the last one has sent its values.",
            ),
        )
    if kind is VerdictClass.IDLE_OTHER and cause in (None, "unknown"):
        return (
            Suggestion(
                "Record the job again with its host threads in the trace (host_tracer_level 2).",
                "The log does not say what the host did while the device had nothing to do.",
            ),
        )
    if kind in (VerdictClass.IDLE_OTHER, VerdictClass.HOST_CONTENTION, VerdictClass.DISPATCH_BOUND):
        change, why = _FIXED[kind]
        return (Suggestion(change, why, predicted_gain_percent=_gain(lost_percent)),)
    return (Suggestion(*_FIXED[kind]),) if kind in _FIXED else ()


def _for_input(
    cause: str | None, stage: str | None, calibration: Calibration | Unavailable, overlap_percent: float | None
) -> tuple[Suggestion, ...]:
    overlap = () if overlap_percent is None or overlap_percent < LEAST_GAIN_PERCENT else (_overlap(overlap_percent),)
    if cause in _INPUT and stage is not None:
        change, why = _WAITING_GENERATOR if (cause, stage) == ("source", GENERATOR) else _INPUT[cause]
        return (Suggestion(change, why.format(stage=stage), _gain_to(calibration)), *overlap)
    faster = Suggestion(
        "Make the pipeline itself faster: parallel map, fewer and vectorised operations per example, a cache behind the "
        "expensive part, more files read at a time.",
        "The next batch is not there when the step ends.",
        _gain_to(calibration),
    )
    return (*overlap, faster) if cause == "no-overlap" else (faster, *overlap)


def _overlap(percent: float) -> Suggestion:
    return Suggestion(
        "End the pipeline with prefetch(tf.data.AUTOTUNE).",
        "Input and step take turns; overlapped, the slower of the two remains.",
        _gain(percent),
    )


def _gain_to(calibration: Calibration | Unavailable) -> float | Unavailable:
    """Return the most that input can gain: down to the step on a held batch."""
    return NO_GAIN if isinstance(calibration, Unavailable) else _gain(100.0 - calibration.utilisation_percent)


def _gain(percent: float) -> float | Unavailable:
    """Return a gain that is worth naming, rounded."""
    return round(percent, 1) if percent >= LEAST_GAIN_PERCENT else TOO_SMALL


_INPUT = {
    "source": (
        "Read several files at a time: interleave(…, num_parallel_calls=tf.data.AUTOTUNE), or "
        "TFRecordDataset(…, num_parallel_reads=…); a cache behind the reader where the data fits.",
        "The step waits for {stage}, which makes the records.",
    ),
    "under-parallel": (
        "Give the stage num_parallel_calls=tf.data.AUTOTUNE, or a larger number than now; where its calls sleep or wait for a "
        "disk or a network, a number, and options.threading.private_threadpool_size at least as large.",
        "The step waits for {stage} while threads and cores are free.",
    ),
    "pool-bound": (
        "Raise options.threading.private_threadpool_size to what num_parallel_calls asks for; AUTOTUNE does not raise it.",
        "Calls of {stage} wait in a queue for a thread while cores are free.",
    ),
    "cpu-bound": (
        "Do less work per example: cache() behind the expensive part, whole batches in one call of map, smaller types or "
        "images, preprocessing done once in advance; more threads will not help.",
        "The cores are full, most of all with {stage}.",
    ),
    "ordering": (
        "Set deterministic=False on the stage, or give it more parallel calls and threads.",
        "Calls of {stage} differ so much in length that finished elements wait for slow ones.",
    ),
    "python-bound": (
        "Make whole batches per call of Python (a generator that yields batches, numpy over a batch), or write the work "
        "in TensorFlow ops; threads do not help Python, processes do.",
        "{stage} runs Python, and only one thread of a process at a time can.",
    ),
}

_WAITING_GENERATOR = (
    "Let more processes or threads make the examples behind the generator, let it yield whole batches, or interleave several "
    "generators with num_parallel_calls.",
    "The step waits for the Python generator, which itself waits for something else.",
)

_FIXED = {
    VerdictClass.HOST_TO_DEVICE_BOUND: (
        "Copy less and earlier: keep images as uint8 until they are on the device, and prefetch to the device.",
        "The device waits for copies from the host.",
    ),
    VerdictClass.DISPATCH_BOUND: (
        "Give TensorFlow fewer and larger pieces: the whole step in one tf.function, several steps per call "
        "(steps_per_execution), a larger batch.",
        "Launching the ops takes longer than they do.",
    ),
    VerdictClass.COMPILE_BOUND: (
        "Record later steps; if they compile too, give every batch the same shape (drop_remainder) and pass Python "
        "numbers as tensors.",
        "Tracing and compiling should happen once.",
    ),
    VerdictClass.DEVICE_BOUND: (
        "Look at the model, not at the input: mixed precision, a larger batch, a faster device.",
        "The next batch is ready before the step ends.",
    ),
    VerdictClass.IDLE_OTHER: (
        "Move work out of the loop: call callbacks, logging and metrics every few steps, or run several steps per call.",
        "The device has nothing to do meanwhile, although data is ready.",
    ),
    VerdictClass.HOST_CONTENTION: (
        "Take work off the processor: fewer threads for the pipeline, a cache, smaller types, or preprocessing done "
        "once in advance.",
        "Input pipeline and training step compete for the same cores.",
    ),
}
