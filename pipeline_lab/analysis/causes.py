"""What limits a job, declared once: causes of idle time, parts of a step, causes of late input, classes of the verdict.

Each member says what it is called, what it means, which color it has, the sentence about it and what to try. Charts, tables,
the verdict, the timeline and the recommendations derive from here; a new cause is a member, and the rule that finds it.
"""

from enum import StrEnum

from pipeline_lab.data_classes import dataclass


@dataclass(frozen=True)
class Recommendation:
    """What to try.

    Attributes:
        change: What to do.
        why: What speaks for it; ``{stage}`` stands for the blamed stage.
        gains_all: Whether a perfect fix would save all that is lost to the cause.
        in_jax: What to do in a job that is written in JAX; empty where that is the same.
        on_cpu: What to do in a job of TensorFlow without an accelerator; empty where that is the same.
    """

    change: str
    why: str
    gains_all: bool = False
    in_jax: str = ""
    on_cpu: str = ""


_NOTHING = Recommendation("", "")
WITHOUT_FUNCTION = Recommendation(
    "Put the training step into a function with @tf.function (in Keras, leave out run_eagerly=True), so that Python launches it as a whole.",
    "Python launches {ops} ops one by one in each step, outside of any function, which lengthens their compute as well; an op takes "
    "about 5 µs in a function, 25 µs from Python.",
)
"""Of a step that runs op by op, whatever the verdict calls the time between its ops."""
DECORATE = "Decorate {functions} with @tf.function, so that Python launches {them} as a whole."
INTO_FUNCTION = "Put the step that takes its gradients at {place} into a function with @tf.function, so that Python launches it as a whole."
"""The same where the script's functions are known that take the gradients, or the line that does so in a loop."""
WITHOUT_SWITCH = "Leave out {switch}{place}, so that Python launches the step as a whole; it serves a debugger."
ONCE_TRACED = (
    "Python in it then runs only while it is traced: .numpy(), print and growing lists have to move out of it."
)
WITHOUT_PREDICT = Recommendation(
    "Put {model}.predict_on_batch(x) in place of {call}: it returns the same array.",
    "Each call of predict makes a dataset, an iterator and callbacks, which pays for many batches, not for one; predict_on_batch makes none.",
)
"""Of a loop that calls Keras' ``predict`` again and again with a batch at a time."""
LESS_PADDING = Recommendation(
    "Batch examples of about one length together: bucket_by_sequence_length(…) in place of padded_batch(…).",
    "{share} of what the steps were sent was padding, copied and computed for nothing.",
)
"""Of a script whose batches are mostly padding."""
FEWER_EVALUATIONS = Recommendation(
    "Evaluate less often, or on fewer batches (in fit: validation_freq, validation_steps).",
    "The training stands still during an evaluation, and what shortens its steps does not shorten that.",
)
"""Of a job that evaluates for much of its time."""
FEWER_CALLS = "Call {call} less often, or on fewer batches."
"""The same where the script calls it."""
LARGER_BATCH = Recommendation(
    "Try a larger batch than {examples}; the learning rate may have to change with it.",
    "Python between the steps takes as long for many examples as for few.",
)
"""Of a job whose small steps leave the device to Python."""
_LESS_BETWEEN_STEPS = Recommendation(
    "Call callbacks, logging and metrics every few steps only; or run several steps per call.",
    "The device has nothing to do meanwhile.",
    gains_all=True,
    in_jax="If Python makes the batches between the steps, make them ahead, in other threads or processes; call logging and metrics "
    "every few steps only.",
)
LESS_BETWEEN_EPOCHS = Recommendation(
    "If callbacks or your own loop predict, draw or save at the end of each epoch, do so every few epochs only.",
    "The device has nothing to do meanwhile.",
)
"""Where what lies between epochs holds the job back."""

ENDS_WHY = (
    "Each new iterator builds the pipeline anew; and giving one up may take long, as tf.data's autotuning may sleep first, for up to a "
    "minute after long epochs."
)
"""Speaks for one iterator for all epochs."""
ONE_FOR_ALL = (
    "Let one iterator serve all epochs: repeat() the dataset, with steps_per_epoch in fit, or next() in your own loop."
)
FIRST_BATCHES = Recommendation(
    "Create the iterator once, before the loop (batches = iter(dataset.repeat())), and call next(batches) in each step.",
    "Nearly every step creates an iterator of its own, as next(iter(dataset)) does. Where the dataset holds more than one batch, the "
    "training sees first batches only: without a shuffle the same one in each step.",
)
"""Where an iterator serves a single step."""


class GapCause(StrEnum):
    """Why a device idled, in the order in which the causes are tried.

    Attributes:
        label: In tables and legends.
        activity: What was being done, as part of a sentence.
        meaning: *The device idles, and …*
        light, dark: Its color in charts of that mode.
        sentence: Of a verdict about it; ``{device}``, ``{framework}``, ``{where}``, ``{lost}``, ``{step}`` and ``{share}`` are filled in.
        recommendation: What to try, where something can be done.
    """

    label: str
    activity: str
    meaning: str
    light: str
    dark: str
    sentence: str
    recommendation: Recommendation | None

    def __new__(
        cls,
        key: str,
        label: str = "",  # the defaults are for type checkers, which take a lookup by value for this call
        activity: str = "",
        meaning: str = "",
        colors: tuple[str, str] = ("", ""),
        sentence: str = "",
        recommendation: Recommendation | None = None,
    ) -> "GapCause":
        member = str.__new__(cls, key)
        member._value_ = key
        member.label, member.activity, member.meaning = label, activity, meaning
        member.light, member.dark = colors
        member.sentence, member.recommendation = sentence, recommendation
        return member

    CAPTURE_GAP = (
        "capture_gap",
        "profiler off",
        "nothing that was recorded",
        "the profiler was off",
        ("#d5d8dd", "#454b55"),
    )
    INPUT_WAIT = (
        "input_wait",
        "input wait",
        "waiting for input",
        "the job waits for its next batch",
        ("#c4520f", "#f0792a"),
    )
    HOST_TO_DEVICE = (
        "host_to_device",
        "copy to device",
        "copying input to the device",
        "input is copied to it",
        ("#2596d8", "#1c90cf"),
        "Host-to-device copies stall the device for {lost} of each {step} step ({share}).",
        Recommendation(
            "Keep images as uint8 until they are on the device; then prefetch to the device.",
            "The device waits for copies from the host.",
            in_jax="Keep images as uint8 until they are on the device; then put the next batch there while the step runs "
            "(jax.device_put in another thread, or two batches ahead).",
        ),
    )
    COMPILE = (
        "compile",
        "compiling",
        "tracing and compiling",
        "a function is traced, compiled or autotuned",
        ("#7b2fd6", "#7a4dff"),
        "Tracing and compiling take {lost} of each {step} step ({share}); these are not the times of a steady job.",
        Recommendation(
            "Record later steps; if they compile too, give every batch the same shape (drop_remainder) and pass Python "
            "numbers as tensors.",
            "Tracing and compiling should happen once.",
        ),
    )
    COLLECTIVE = (
        "collective",
        "collectives",
        "collectives",
        "a host op exchanges values with other workers, or waits for them",
        ("#b80d10", "#d3cb8e"),
        "Collectives, and waiting for other devices or workers in them, keep {device} from computing for {lost} of each {step} "
        "step ({share}).",
        Recommendation(
            "Give the devices or workers equal work; or exchange less: a larger batch for each, values of half the size "
            "(mixed precision), fewer workers; where only some were recorded, record all of them at the same steps.",
            "A step ends when the last one has sent its values.",
        ),
    )
    HOST_OPERATION = (
        "host_operation",
        "host operation",
        "an operation on the host",
        "one host op fills at least half of the gap; it is named",
        ("#d28200", "#ece06a"),
        "A host operation leaves {device} idle for {lost} of each {step} step ({share}).",
        _LESS_BETWEEN_STEPS,
    )
    CHECKPOINT = (
        "checkpoint",
        "checkpoint",
        "checkpoints",
        "a checkpoint is written or read",
        ("#45200a", "#a4612a"),
        "Writing checkpoints leaves {device} idle for {lost} of each {step} step ({share}).",
        Recommendation(
            "Write checkpoints less often (in Keras' ModelCheckpoint: save_freq), or asynchronously.",
            "Training stops while they are written.",
            gains_all=True,
        ),
    )
    ITERATOR_END = (
        "iterator_end",
        "iterator setup and teardown",
        "the setup or teardown of an iterator",
        "Python sets up an iterator, or tears one down, which waits for its threads",
        ("#0c0c60", "#6c6090"),
        "Setting up and tearing down tf.data iterators leaves {device} idle for {lost} of each {step} step ({share}).",
        Recommendation(
            ONE_FOR_ALL,
            ENDS_WHY,
            gains_all=True,
        ),
    )
    DISPATCH = (
        "dispatch",
        "dispatch",
        "dispatch",
        "TensorFlow prepares or launches ops",
        ("#1b6049", "#81a572"),
        "Op dispatch overhead leaves {device} idle for {lost} of each {step} step ({share}).",
        Recommendation(
            "Run several steps per call (steps_per_execution); then try a larger batch, and see that the whole step is in one "
            "tf.function.",
            "The device waits until the next ops are launched.",
            gains_all=True,
            in_jax="Put the whole step into one jax.jit; then let it make several steps (jax.lax.scan), or take a larger batch.",
        ),
    )
    PYTHON = (
        "python",
        "Python",
        "Python outside TensorFlow (callbacks, printing, garbage collection)",
        "the training thread is outside TensorFlow",
        ("#ee3fae", "#d398bb"),
        "Python code between {framework}'s calls{where} leaves {device} idle for {lost} of each {step} step ({share}).",
        _LESS_BETWEEN_STEPS,
    )
    UNKNOWN = (
        "unknown",
        "unknown",
        "something that the trace does not show",
        "nothing in the trace explains it",
        ("#7a7a7a", "#858a91"),
        "An unknown cause leaves {device} idle for {lost} of each {step} step ({share}).",
        Recommendation(
            "Record the job again with its host threads in the trace (host_tracer_level 2).",
            "The log does not say what the host did while the device had nothing to do.",
        ),
    )


class StepPart(StrEnum):
    """What a recorded step consists of, in the order in which charts stack the parts; they add up to the step.

    Attributes:
        label: In tables and legends.
        activity: What was being done, as part of a sentence.
        category: Whose color it has.
        cause: Of the idle time that the part is; None where the device works.
    """

    label: str
    activity: str
    category: str
    cause: GapCause | None

    def __new__(cls, key: str, label: str | GapCause = "", category: str = "") -> "StepPart":
        member = str.__new__(cls, key)
        member._value_ = key
        if isinstance(label, GapCause):
            member.cause, member.label, member.activity, member.category = (
                label,
                label.label,
                label.activity,
                label.value,
            )
        else:
            member.cause, member.label, member.activity, member.category = None, label, label, category
        return member

    INPUT_WAIT = ("input_wait", GapCause.INPUT_WAIT)
    HOST_TO_DEVICE = ("host_to_device", GapCause.HOST_TO_DEVICE)
    DEVICE_COMPUTE = ("device_compute", "device compute", "busy")
    DEVICE_COPY = ("device_copy", "copies on the device", GapCause.HOST_TO_DEVICE.value)
    COLLECTIVE = ("collective", GapCause.COLLECTIVE)
    COMPILE = ("compile", GapCause.COMPILE)
    CHECKPOINT = ("checkpoint", GapCause.CHECKPOINT)
    ITERATOR_END = ("iterator_end", GapCause.ITERATOR_END)
    HOST_OPERATION = ("host_operation", GapCause.HOST_OPERATION)
    DISPATCH = ("dispatch", GapCause.DISPATCH)
    HOST_COMPUTE = ("host_compute", "host compute", "busy")
    PYTHON = ("python", GapCause.PYTHON)
    OTHER = ("other", GapCause.UNKNOWN)

    @property
    def column(self) -> str:
        """Its column in the table of steps, and its field in their sum."""
        return f"{self.value}_ns"

    @property
    def light(self) -> str:
        """Its color on a light ground."""
        return Work.BUSY.light if self.category == Work.BUSY else GapCause(self.category).light


class InputCause(StrEnum):
    """Why the next batch is not there in time.

    Attributes:
        clause: What a sentence about the job goes on with; ``{stage}`` stands for the blamed stage, ``{python}`` for the functions
            of Python that it runs, in parentheses, ``{source}`` for what fills its buffer.
        recommendation: What to try.
    """

    clause: str
    recommendation: Recommendation

    def __new__(cls, key: str, clause: str = "", recommendation: Recommendation = _NOTHING) -> "InputCause":
        member = str.__new__(cls, key)
        member._value_ = key
        member.clause, member.recommendation = clause, recommendation
        return member

    SOURCE = (
        "source",
        ", because the source ({stage}) is the bottleneck",
        Recommendation(
            "Read several files at a time: interleave(…, num_parallel_calls=tf.data.AUTOTUNE); or "
            "TFRecordDataset(…, num_parallel_reads=…), or a cache after the reader where the data fits.",
            "The step waits for {stage}, which makes the records.",
        ),
    )
    UNDER_PARALLEL = (
        "under-parallel",
        ", because {stage} has too little parallelism",
        Recommendation(
            "Give the stage num_parallel_calls=tf.data.AUTOTUNE; or a larger number than now; where its calls sleep or wait "
            "for a disk or a network, a number, and options.threading.private_threadpool_size at least as large.",
            "The step waits for {stage} while threads and cores are free.",
        ),
    )
    POOL_BOUND = (
        "pool-bound",
        ", because the thread pool is saturated by calls of {stage}",
        Recommendation(
            "Raise options.threading.private_threadpool_size to what num_parallel_calls asks for; AUTOTUNE does not raise it.",
            "Calls of {stage} wait in a queue for a thread while cores are free.",
        ),
    )
    CPU_BOUND = (
        "cpu-bound",
        ", because {stage} is CPU-limited",
        Recommendation(
            "Cache after the expensive part but before anything random (cache()); or map whole batches in one call, use smaller types or images, preprocess "
            "once in advance; more threads will not help.",
            "The cores are full, most of all with {stage}.",
        ),
    )
    ORDERING = (
        "ordering",
        ", because deterministic order causes head-of-line blocking in {stage}",
        Recommendation(
            "Set deterministic=False on the stage; or give it more parallel calls and threads.",
            "Calls of {stage} differ so much in length that finished elements wait for slow ones.",
        ),
    )
    PYTHON_BOUND = (
        "python-bound",
        ", because {stage} runs Python{python}, on one thread at a time",
        Recommendation(
            "Write the work in TensorFlow ops; or make whole batches per call of Python (a generator that yields batches, numpy "
            "over a batch). Where neither can be done, processes help; threads only where the function releases Python's lock, as "
            "decoding images often does.",
            "{stage} runs Python{python}, which computes on one thread at a time unless it releases Python's lock.",
        ),
    )
    PYTHON_WAITS = (
        "python-waits",
        ", because Python in {stage}{python} sleeps or waits, one call after the other",
        Recommendation(
            "Let more calls wait at once: give the stage num_parallel_calls as a number well above the cores (AUTOTUNE stays at "
            "the cores), and options.threading.private_threadpool_size as many threads.",
            "{stage} runs Python{python} that leaves the processor idle: it sleeps, or waits for a disk or a network.",
        ),
    )
    CALL_OVERHEAD = (
        "call-overhead",
        ", because {stage} handles many small elements one by one, which costs more than the work in them",
        Recommendation(
            "Batch before the map, so that one call of the function makes a whole batch; of rows in memory, shuffle and batch "
            "row numbers, and gather the rows of a batch. Where single elements are needed later, unbatch() after it.",
            "{stage} takes microseconds for an element, most of which is handing it on.",
        ),
    )
    EPOCH_START = (
        "epoch-start",
        ", because {stage} fills its buffer again at the start of each epoch{source}",
        Recommendation(
            "Shuffle before the expensive work (file names or records, not decoded examples); or use a smaller shuffle buffer, cache() before "
            "the shuffle, or repeat() inside the pipeline (with steps_per_epoch), so that buffers stay full.",
            "The first step of each epoch waits while {stage} starts again; the other steps hardly wait.",
        ),
    )
    LOOP_START = (
        "loop-start",
        ", because TensorFlow prepares a loop inside tf.function anew for each pass over the data",
        Recommendation(
            "Let one call of the function make several passes: loop over dataset.repeat(n) instead of calling it n times.",
            "Each pass begins with a wait that no request for a batch shows: TensorFlow rewrites the dataset, and prepares the "
            "loop's body as a function of the dataset, before it asks for the first batch.",
        ),
    )
    OWN_BATCHES = (
        "own-batches",
        ", because its batches come from the script's own Python, which runs between the calls of {stage}",
        Recommendation(
            "Make the batches while the step runs: with tf.data, or in processes of their own; a thread (Dataset.from_generator(…).prefetch(2)) "
            "is enough where making them mostly waits for a disk or a network.",
            "Between the calls of {stage} the script's own Python runs (for its batches, logging and whatever else), and TensorFlow has little to do.",
        ),
    )
    NO_OVERLAP = (
        "no-overlap",
        ", because input and compute do not overlap",
        Recommendation(
            "End the pipeline with prefetch(tf.data.AUTOTUNE).",
            "Input and compute do not overlap; overlapped, the slower of the two remains.",
        ),
    )


_WORKERS = (
    "so that several threads run {function}: NumPy and image libraries release Python's lock in most of their work. Where it computes in "
    "Python itself, add use_multiprocessing=True, which pays where a batch takes much longer to make than to copy; or do its work in numpy over "
    "the whole batch."
)
PYTHON_CHANGES = {
    "py_function": "Write {function} in TensorFlow ops; or let one call of it make a whole batch, unless it does already (batch first, then "
    "map); where neither can be done, let several processes run it (keras.utils.PyDataset, in Keras 2 Sequence, with workers and use_multiprocessing=True).",
    "generator": "Let {function} yield whole batches, so that one call of Python makes many examples; where that does not suffice, "
    "let several processes make them.",
    "PyDataset": f"Give the dataset workers=4, {_WORKERS}",
    "Sequence": f"Where an epoch takes much longer than 10 s (at its end Keras 2 waits up to 5 s for workers), give fit workers=4, {_WORKERS} "
    "Keras 3 does not wait so.",
}
"""What to do about Python that keeps a core busy, where the function is known, by how it is called."""
PYTHON_CHANGES["numpy_function"] = PYTHON_CHANGES["py_function"]


class VerdictClass(StrEnum):
    """What limits the job.

    Attributes:
        tone: ``good``, ``bad`` or ``neutral``, for formats that color it.
        badge: Its color on a page.
        loss: What is lost to it, as the name of a number.
        sentence: Of the verdict; ``{device}``, ``{lost}``, ``{step}``, ``{share}``, ``{why}`` and ``{beside}``, what waits for
            input take besides, are filled in.
        recommendation: What to try; None where the cause decides.
    """

    tone: str
    badge: str
    loss: str
    sentence: str
    recommendation: Recommendation | None

    def __new__(
        cls,
        key: str,
        loss: str | GapCause = "",
        sentence: str = "",
        recommendation: Recommendation | None = None,
        tone: str = "bad",
        badge: str = "blue",
    ) -> "VerdictClass":
        member = str.__new__(cls, key)
        member._value_ = key
        member.tone, member.badge = tone, badge
        if isinstance(loss, GapCause):
            member.loss, member.sentence, member.recommendation = loss.activity, loss.sentence, loss.recommendation
        else:
            member.loss, member.sentence, member.recommendation = loss, sentence, recommendation
        return member

    INPUT_BOUND = (
        "input-bound",
        "input wait",
        "The job is input-bound: {lost} of each {step} step ({share}) is spent waiting for the next batch{why}.",
        Recommendation(
            "Give the slowest map num_parallel_calls=tf.data.AUTOTUNE; then cache after the expensive part, vectorize what runs "
            "per example, and read more files in parallel.",
            "The next batch is not there when the step ends.",
        ),
        "bad",
        "orange",
    )
    HOST_TO_DEVICE_BOUND = ("host-to-device-bound", GapCause.HOST_TO_DEVICE)
    DISPATCH_BOUND = ("dispatch-bound", GapCause.DISPATCH)
    COMPILE_BOUND = ("compile-bound", GapCause.COMPILE)
    DEVICE_BOUND = (
        "device-bound",
        "nothing",
        "Input is not the limit: {device} is busy for {share} of each {step} step.",
        Recommendation(
            "Compile the step with XLA (jit_compile=True); then try mixed precision, a larger batch, a faster device.",
            "There is nothing to fix in the input: the next batch is ready before the step ends.",
            in_jax="Try mixed precision, a larger batch, a faster device.",
            on_cpu="Try a larger batch, a smaller model or a faster device; XLA (jit_compile=True) makes some steps faster on a CPU "
            "and others slower, so time it.",
        ),
        "good",
        "green",
    )
    HOST_CONTENTION = (
        "host-contention",
        "CPU contention",
        "The end-to-end step takes {lost} of {step} ({share}) longer than the compute-only step, {beside}: the input "
        "pipeline competes with it for the CPU{why}.",
        Recommendation(
            "Cache after the pipeline's expensive part but before anything random (cache()); or use smaller types, or preprocess once in advance. Fewer threads "
            "(options.threading.private_threadpool_size) help only where it runs more of them than there are cores.",
            "The input pipeline and the training step compete for the same cores.",
            gains_all=True,
        ),
    )
    IDLE_OTHER = ("idle-other", "idle for other reasons", GapCause.UNKNOWN.sentence, GapCause.UNKNOWN.recommendation)
    UNKNOWN = (
        "unknown",
        "nothing that is known",
        "The bottleneck cannot be determined. {why}",
        None,
        "neutral",
        "gray",
    )

    @property
    def label(self) -> str:
        """What badges and tables call it."""
        return "idle device" if self is VerdictClass.IDLE_OTHER else self.value.replace("-", " ")


SLOWED_SENTENCE = "The job is input-bound: {lost} of each {step} step ({share}) is lost to input, {waited} of it waiting for the next batch{why}."
"""Of an input-bound job whose pipeline also slows its step down: the loss is more than what shows as waiting."""

BREAKS_SENTENCE = (
    "Between its epochs the job stands still for {lost} of each {step} step ({share}), on average over all steps."
)
"""Of a job whose device has nothing to do while one epoch ends and the next begins."""
PREDICTS_SENTENCE = (
    "Between its steps the job predicts a batch at a time for {lost} of each {step} step ({share}), in {calls}."
)
"""Of a job that calls Keras' ``predict`` again and again, where its steps themselves are short."""
BREAKS_WHY = "Between epochs the iterator is made anew and callbacks run, while the device has nothing to do."
"""Speaks for one iterator for all epochs, where its ends themselves take no time."""

PACE_SENTENCE = "The job is limited by input throughput: the pipeline alone takes {pipeline} per batch, the compute-only step {alone}{why}."
"""Of an input-bound job whose pipeline sets its pace, though most of what it takes does not show as waiting."""


SHARED_CORES_SENTENCE = (
    "The input pipeline takes about {lost} of each {step} step ({share}) from the training computation, {beside}: "
    "both need the same full cores{why}."
)
"""Of a job on a CPU whose step alone was not timed: estimated from processor times."""


class Busy(StrEnum):
    """What is busy when nothing holds the job back, as sentences name it; its ``evidence`` names its share of the step."""

    evidence: str

    def __new__(cls, name: str, evidence: str = "") -> "Busy":
        member = str.__new__(cls, name)
        member._value_ = name
        member.evidence = evidence
        return member

    DEVICE = ("the device", "device busy")
    COPYING = ("the device, mostly with copies,", "device busy, mostly copying")
    EMULATED = ("the emulated accelerator", "emulated accelerator busy")
    HOST_COMPUTE = ("the training computation", "compute busy")
    UNTRACED = ("the training step", "compute busy")


class Work(StrEnum):
    """What an event of the timeline is where that is not a cause of idle time.

    Attributes:
        label: In tables and legends.
        light, dark: Its color in charts of that mode; empty where charts do not draw it.
    """

    label: str
    light: str
    dark: str

    def __new__(cls, key: str, label: str = "", light: str = "", dark: str = "") -> "Work":
        member = str.__new__(cls, key)
        member._value_ = key
        member.label, member.light, member.dark = label, light, dark
        return member

    BUSY = ("busy", "busy", "#26407a", "#7cb6f2")
    SHORT_GAPS = ("short_gaps", "work and short gaps", "#6d80ab", "#4b6a8e")
    COLLECTIVE = ("collective", GapCause.COLLECTIVE.label)
    TF_DATA = ("tf_data", "input pipeline", "#12908a", "#2fb8a8")
    HIDDEN_WAIT = ("hidden_wait", "input wait hidden by device work", "#e9a982", "#8f5a36")
    STEP = ("step", "step")
    WINDOW = ("window", "profiler on")
    OTHER = ("other", "other events")
