"""Named option sets that reproduce questions from the field."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline_lab.errors import OptionsError
from pipeline_lab.options.explaining import did_you_mean
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.stages.batches import BatchStage, BucketStage
from pipeline_lab.stages.delivery import PrefetchStage
from pipeline_lab.stages.functions import AugmentStage, LookupStage, MapStage, ParseStage, ViewsStage
from pipeline_lab.stages.order import RepeatStage, ShuffleStage
from pipeline_lab.stages.parts import RandomShardStage
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import ReadStage
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stores import CacheStage
from pipeline_lab.workloads.audio import AudioWorkload
from pipeline_lab.workloads.features import FeaturesWorkload
from pipeline_lab.workloads.generator import GeneratorWorkload
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.sparse import SparseWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from pipeline_lab.workloads.workload import Workload


@dataclass(frozen=True)
class Preset:
    """A named, ready-to-run option set.

    Attributes:
        name: What the command line and the app call it.
        question: What it shows, as one sentence for people.
        options: The options themselves.
    """

    name: str
    question: str
    options: RunOptions

    @property
    def headline(self) -> str:
        """The question alone, without what is set to show the answer."""
        head, mark, _ = self.question.partition("? ")
        return head + mark.rstrip()


@dataclass(frozen=True)
class PresetGroup:
    """Presets about one matter.

    Attributes:
        title: What they are about, in a word or two.
        question: What they answer together, as a sentence.
        presets: In the order in which lists show them.
    """

    title: str
    question: str
    presets: tuple[Preset, ...]


def find_by_name(presets: Sequence[Preset], name: str) -> Preset:
    """Return the preset of that name.

    Raises:
        OptionsError: There is none; the text offers the closest one.
    """
    for preset in presets:
        if preset.name == name:
            return preset
    meant = did_you_mean(name, [preset.name for preset in presets])
    raise OptionsError(f"There is no preset {name[:80]!r}; `pipeline-lab presets` lists those that there are.{meant}")


def _preset(name: str, question: str, batching: BatchStage | BucketStage) -> Preset:
    stages = (
        ReadStage(mode="interleave", cycle_length=8),
        ShuffleStage(buffer_size=320),
        RepeatStage(),
        ParseStage(num_parallel_calls="autotune"),
        batching,
        PrefetchStage(),
    )
    pipeline = PipelineOptions(stages=stages)
    return Preset(name, question, RunOptions(name=name, workload=AudioWorkload(), pipeline=pipeline))


AUDIO_PADDED = _preset(
    "audio-padded",
    "What do clips of 5 to 180 s cost in batches? 320 WAV files, 32 clips to a batch, each padded to the longest of its "
    "batch: most of what the step computes is padding.",
    BatchStage(size=32, mode="padded_batch"),
)

AUDIO_BUCKETED = _preset(
    "audio-bucketed",
    "How much padding does sorting by length save? The clips of `audio-padded`, each batch made of clips from one of five "
    "buckets.",
    BucketStage(),
)

AUDIO_RAGGED = _preset(
    "audio-ragged",
    "What do ragged batches save? The clips of `audio-padded`, each kept at its own length: no padding, and a step that "
    "can do without.",
    BatchStage(size=32, mode="ragged_batch"),
)

AUDIO_PRESETS = (AUDIO_PADDED, AUDIO_BUCKETED, AUDIO_RAGGED)
"""All of them, in the order in which lists show them."""


def cached() -> Preset:
    options = RunOptions(
        name="cached",
        workload=SyntheticWorkload(examples_per_file=(320,) * 2, map_ms=1.0, compute_ms=4.0),
        pipeline=PipelineOptions(
            stages=(
                ReadStage(),
                MapStage(),
                CacheStage(),
                RepeatStage(),
                BatchStage(size=16),
                PrefetchStage(buffer_size=2),
            ),
            tensorflow_rewrites=False,
        ),
        training=TrainingOptions(steps=160),
    )
    question = (
        "What does cache() bring, and when? Every batch takes 16 ms to prepare while the first epoch of 40 steps fills the "
        "cache, and next to nothing afterwards; move the stage, or set `pipeline.cache.where` to file."
    )
    return Preset(options.name, question, options)


def first_files() -> Preset:
    options = RunOptions(
        name="first-files",
        workload=SyntheticWorkload(examples_per_file=(400,) * 30, map_ms=0.05, compute_ms=5.0),
        pipeline=PipelineOptions(
            stages=(
                ReadStage(),
                ShuffleStage(buffer_size=1000),
                RepeatStage(),
                MapStage(),
                BatchStage(size=16),
                PrefetchStage(),
            )
        ),
        training=TrainingOptions(steps=100),
    )
    question = (
        "Why does training see only the first files? 30 files of 400, read one after the other into a shuffle buffer of 1,000: "
        "100 steps of 16 reach seven of them. Set `pipeline.read.mode` to interleave and `pipeline.read.shuffle_files` to true "
        "to reach more."
    )
    return Preset(options.name, question, options)


def small_data() -> Preset:
    options = RunOptions(
        name="small-data",
        workload=ImagesWorkload(image_size=32, examples_per_file=(200,)),
        pipeline=PipelineOptions(
            stages=(
                ReadStage(),
                ShuffleStage(buffer_size=1000),
                RepeatStage(),
                ParseStage(num_parallel_calls="autotune"),
                BatchStage(size=20),
                PrefetchStage(),
            )
        ),
        training=TrainingOptions(steps=60),
    )
    question = (
        "What does a shuffle buffer of 1,000 do with 200 images? It holds them all: the first batch waits until every one was "
        "read, and each epoch is shuffled perfectly."
    )
    return Preset(options.name, question, options)


def wrong_order() -> Preset:
    options = RunOptions(
        name="wrong-order",
        workload=ImagesWorkload(image_size=32, examples_per_file=(256,) * 4),
        pipeline=PipelineOptions(
            stages=(
                ReadStage(),
                RepeatStage(),
                ParseStage(),
                ShuffleStage(buffer_size=512),
                PrefetchStage(),
                BatchStage(size=32),
            ),
            tensorflow_rewrites=False,
        ),
        training=TrainingOptions(steps=60),
    )
    question = (
        "What is wrong with this order? Repeat before shuffle mixes the epochs, shuffle behind parse holds decoded images, "
        "and prefetch before batch leaves the batches themselves to the training step: open it in the form, which says so."
    )
    return Preset(options.name, question, options)


def micro_batches() -> Preset:
    options = RunOptions(
        name="micro-batches",
        workload=ImagesWorkload(image_size=32, examples_per_file=(512,) * 4),
        pipeline=PipelineOptions(
            stages=(
                ReadStage(mode="interleave", shuffle_files=True, cycle_length=4, num_parallel_calls="autotune"),
                ShuffleStage(buffer_size=1024),
                RepeatStage(),
                ParseStage(num_parallel_calls="autotune"),
                BatchStage(size=128),
                PrefetchStage(),
            )
        ),
        training=TrainingOptions(steps=60, accumulate=4),
    )
    question = (
        "How much memory does a batch take? The gradients of four micro-batches of 32 add up to those of a batch of 128; set "
        "`training.accumulate` to 1 and compare the peak of the allocator."
    )
    return Preset(options.name, question, options)


def in_graph_loop() -> Preset:
    options = RunOptions(
        name="in-graph-loop",
        workload=SyntheticWorkload(map_ms=0.0, compute_ms=1.0, tiny_ops=100),
        pipeline=PipelineOptions(
            stages=(ReadStage(), RepeatStage(), MapStage(), BatchStage(size=16), PrefetchStage(buffer_size=16))
        ),
        training=TrainingOptions(steps=640, loop="in_graph", steps_per_call=16),
    )
    question = (
        "What does a loop inside the graph save? Steps of 1 ms with 100 tiny operations, 16 of them in one call; set "
        "`training.loop` to custom and `training.steps_per_call` to 1 to have Python call each operation of each step."
    )
    return Preset(options.name, question, options)


def changing_shapes() -> Preset:
    options = RunOptions(
        name="changing-shapes",
        workload=SyntheticWorkload(varied_lengths=True, map_ms=0.0, compute_ms=5.0),
        pipeline=PipelineOptions(
            stages=(
                ReadStage(),
                RepeatStage(),
                MapStage(),
                BatchStage(size=16, mode="padded_batch"),
                PrefetchStage(buffer_size=4),
            )
        ),
    )
    question = (
        "What if every batch has another shape? Records of varied length are padded to the longest of their batch, and "
        "TensorFlow traces the step again for each shape; with `training.loop` in_graph it is traced once, for any length."
    )
    return Preset(options.name, question, options)


def keras_fit(optimised: RunOptions) -> Preset:
    training = TrainingOptions(steps=192, warmup_steps=16, loop="keras_fit", steps_per_call=16)
    question = (
        "What does `Model.fit` do, and what does `steps_per_execution` bring? The job of `optimised` trained by Keras, 16 "
        "steps per execution; set `training.steps_per_call` to 1 to let its callbacks run after every step."
    )
    return Preset("keras-fit", question, optimised.model_copy(update={"name": "keras-fit", "training": training}))


def evaluation_rebuilt() -> Preset:
    return _evaluation(
        "evaluation-rebuilt",
        "Does the pipeline start over when training and evaluation alternate? Built anew after every 25 steps of 32 examples, "
        "it never gets beyond the first 1,056 of 1,792; see `evaluation-kept` and `random-shards`. One file is held out for "
        "the evaluations.",
    )


def evaluation_kept() -> Preset:
    return _evaluation(
        "evaluation-kept",
        "What does the job of `evaluation-rebuilt` see if its pipeline goes on after each evaluation? All of the data, epoch "
        "by epoch.",
        evaluation="keep",
    )


def random_shards() -> Preset:
    return _evaluation(
        "random-shards",
        "What if the pipeline of `evaluation-rebuilt` begins elsewhere each time? It visits 14 stretches of 128 examples in a "
        "new random order, so that all of the data come in the end; whatever lies before a stretch is read in vain.",
        RandomShardStage(num_shards=14, shard_size=128),
    )


def _evaluation(
    name: str, question: str, *behind_read: RandomShardStage, evaluation: Literal["rebuild", "keep"] = "rebuild"
) -> Preset:
    stages = (
        ReadStage(mode="sequential"),
        *behind_read,
        ShuffleStage(buffer_size=256),
        RepeatStage(),
        ParseStage(),
        BatchStage(size=32),
        PrefetchStage(buffer_size=2),
    )
    options = RunOptions(
        name=name,
        workload=ImagesWorkload(data="digits", image_size=16, examples_per_file=(256,) * 8),
        pipeline=PipelineOptions(stages=stages),
        training=TrainingOptions(
            steps=195, evaluate_every=25, evaluate_steps=8, evaluation=evaluation, held_out_files=1
        ),
    )
    return Preset(name, question, options)


_AUGMENT = AugmentStage(pad=4, crop=32, flip=True, rotate_degrees=15, cutout=8, normalise=True)
_PARALLEL_AUGMENT = _AUGMENT.model_copy(update={"num_parallel_calls": "autotune"})
_UNEQUAL = SyntheticWorkload(examples_per_file=(1000, 2000, 3000), map_ms=0.05, compute_ms=5.0)
_OPEN_EIGHT = ReadStage(mode="interleave", shuffle_files=True, cycle_length=8)
_VIEWS = ViewsStage(num_parallel_calls="autotune")
_CAPTIONS = FeaturesWorkload()
_OPEN_ALL = ReadStage(mode="interleave", shuffle_files=True, cycle_length=4)
_MIX = ShuffleStage(buffer_size=1000)
_IMAGES = ImagesWorkload(data="digits", image_size=32, examples_per_file=(1024,) * 8)


def _preset_presets(name: str, question: str, workload: Workload, pipeline: PipelineOptions) -> Preset:
    return Preset(name, question, RunOptions(name=name, workload=workload, pipeline=pipeline))


def _stages(*stages: Stage) -> tuple[Stage, ...]:
    return stages


BASELINE = _preset_presets(
    "baseline",
    "How much does a plain TFRecordDataset cost? One file after the other, every map serial, no prefetch, "
    "TensorFlow's own rewrites off. 32×32 images, batch 128, small residual network.",
    _IMAGES,
    PipelineOptions(
        stages=_stages(
            ReadStage(mode="sequential"),
            ShuffleStage(buffer_size=2048),
            RepeatStage(),
            ParseStage(),
            _AUGMENT,
            BatchStage(size=128),
        ),
        tensorflow_rewrites=False,
    ),
)

OPTIMISED = _preset_presets(
    "optimised",
    "What does the full pipeline bring? Interleaved files, parallel vectorised parsing and augmentation, prefetch. "
    "Same data, model and batch as `baseline`.",
    _IMAGES,
    PipelineOptions(
        stages=_stages(
            ReadStage(mode="interleave", shuffle_files=True, cycle_length=4, num_parallel_calls="autotune"),
            ShuffleStage(buffer_size=2048),
            RepeatStage(),
            BatchStage(size=128),
            ParseStage(num_parallel_calls="autotune"),
            _PARALLEL_AUGMENT,
            PrefetchStage(),
        ),
    ),
)

SYNTHETIC = _preset_presets(
    "synthetic",
    "What does prefetch hide? 16 ms to prepare a batch, 10 ms to train on it: with overlap a step takes the longer "
    "of the two, without it their sum.",
    SyntheticWorkload(map_ms=1.0, compute_ms=10.0),
    PipelineOptions(
        stages=_stages(ReadStage(), RepeatStage(), MapStage(), BatchStage(size=16), PrefetchStage(buffer_size=2)),
        tensorflow_rewrites=False,
    ),
)

PYTHON_BETWEEN_STEPS = Preset(
    "python-between-steps",
    "What does a slow callback look like? 20 ms of Python after every step: the device idles although data is ready.",
    RunOptions(
        name="python-between-steps",
        workload=SyntheticWorkload(map_ms=0.1, compute_ms=10.0, python_ms=20.0),
        pipeline=PipelineOptions(
            stages=_stages(ReadStage(), RepeatStage(), MapStage(), BatchStage(size=16), PrefetchStage(buffer_size=4)),
            tensorflow_rewrites=False,
        ),
        training=TrainingOptions(steps=100),
    ),
)

UNEQUAL_FILES = _preset_presets(
    "unequal-files",
    "Are files of unequal size sampled by size? Three files of 1000, 2000 and 3000 examples, interleaved: thirds "
    "first, then halves, then the largest file alone.",
    _UNEQUAL,
    PipelineOptions(
        stages=_stages(
            ReadStage(mode="interleave", cycle_length=3),
            ShuffleStage(buffer_size=9),
            RepeatStage(),
            MapStage(),
            BatchStage(size=32),
            PrefetchStage(),
        ),
    ),
)

SAMPLED_BY_SIZE = _preset_presets(
    "sampled-by-size",
    "How are files of unequal size sampled by size? The files of `unequal-files`, each record drawn from a file with a "
    "chance that goes by the file's length.",
    _UNEQUAL,
    PipelineOptions(
        stages=_stages(
            ReadStage(mode="sample"),
            RepeatStage(),
            MapStage(),
            BatchStage(size=32),
            PrefetchStage(),
        ),
    ),
)

EQUAL_SHARDS = _preset_presets(
    "equal-shards",
    "What if the data of `unequal-files` is written again as shards of equal size? Interleaved as before, each file is "
    "used at the same rate to the end.",
    _UNEQUAL.model_copy(update={"examples_per_file": (2000,) * 3}),
    UNEQUAL_FILES.options.pipeline,
)

COVERING_SHUFFLE = _preset_presets(
    "covering-shuffle",
    "What does a shuffle buffer that covers the data do for `unequal-files`? All 6000 examples are mixed, for the price "
    "of reading them all before the first batch.",
    _UNEQUAL,
    PipelineOptions(
        stages=_stages(
            ReadStage(mode="interleave", cycle_length=3),
            ShuffleStage(buffer_size=6000),
            RepeatStage(),
            MapStage(),
            BatchStage(size=32),
            PrefetchStage(),
        ),
    ),
)

VIEWS_TOGETHER = _preset_presets(
    "views-together",
    "What if ten views of each image, five crops and their mirror images, follow each other? They fill the batches "
    "together, although the images themselves were shuffled.",
    ImagesWorkload(),
    PipelineOptions(
        stages=_stages(
            _OPEN_EIGHT,
            ShuffleStage(buffer_size=2048),
            RepeatStage(),
            ParseStage(),
            _VIEWS,
            BatchStage(size=128),
            PrefetchStage(),
        )
    ),
)

VIEWS_APART = _preset_presets(
    "views-apart",
    "How do the views of an image get into different batches? By a shuffle behind views, whose buffer holds those of two "
    "thousand images. The images of `views-together`, and the same views.",
    ImagesWorkload(),
    PipelineOptions(
        stages=_stages(
            _OPEN_EIGHT,
            ParseStage(),
            _VIEWS,
            ShuffleStage(buffer_size=20_000),
            RepeatStage(),
            BatchStage(size=128),
            PrefetchStage(),
        )
    ),
)

SPARSE = Preset(
    "sparse",
    "What fills the gaps between the steps of a job with sparse features? 17 of them, four replicas that share each "
    "batch, embeddings looked up on the host.",
    RunOptions(
        name="sparse",
        workload=SparseWorkload(),
        pipeline=PipelineOptions(
            stages=_stages(ReadStage(), RepeatStage(), BatchStage(size=256), ParseStage(), PrefetchStage())
        ),
        training=TrainingOptions(replicas=4),
    ),
)

FEATURES_REPLICATED = _preset_presets(
    "features-replicated",
    "What does it cost to store an image's vector with each of its 20 captions? 4096 numbers in every record, on disk and "
    "through every stage.",
    _CAPTIONS.model_copy(update={"layout": "replicated"}),
    PipelineOptions(
        stages=_stages(_OPEN_ALL, _MIX, RepeatStage(), BatchStage(size=128), ParseStage(), PrefetchStage())
    ),
)

FEATURES_LOOKUP = _preset_presets(
    "features-lookup",
    "What does a table bring, and the number of the image in each record? The captions of `features-replicated`, their "
    "vectors read from a memory-mapped file; `workload.layout` also takes constant, variable and sharded.",
    _CAPTIONS,
    PipelineOptions(
        stages=_stages(
            _OPEN_ALL, _MIX, RepeatStage(), BatchStage(size=128), ParseStage(), LookupStage(), PrefetchStage()
        )
    ),
)

GENERATOR = _preset_presets(
    "generator",
    "What does from_generator cost? Python makes one example after the other; set `workload.examples_at_once` to the "
    "batch size to see what making whole batches saves.",
    GeneratorWorkload(),
    PipelineOptions(stages=_stages(ReadStage(), RepeatStage(), BatchStage(size=32), PrefetchStage(buffer_size=2))),
)

GENERATOR_PROCESSES = _preset_presets(
    "generator-processes",
    "What do Python processes bring beside tf.data? Two of them make the examples, 2 ms each, and hand them over through a "
    "queue; set `workload.producer` to threads or in_line to compare.",
    GeneratorWorkload(example_ms=2.0, producer="processes"),
    GENERATOR.options.pipeline,
)

PRESET_GROUPS = (
    PresetGroup(
        "Stalls",
        "Why does the device wait, and what takes the wait away?",
        (BASELINE, OPTIMISED, SYNTHETIC, cached(), wrong_order(), PYTHON_BETWEEN_STEPS),
    ),
    PresetGroup(
        "Sampling",
        "Which examples does training see, and in what order?",
        (
            UNEQUAL_FILES,
            SAMPLED_BY_SIZE,
            EQUAL_SHARDS,
            COVERING_SHUFFLE,
            first_files(),
            small_data(),
            VIEWS_TOGETHER,
            VIEWS_APART,
            evaluation_rebuilt(),
            evaluation_kept(),
            random_shards(),
        ),
    ),
    PresetGroup(
        "Batches",
        "What if examples differ in length?",
        (*AUDIO_PRESETS, changing_shapes()),
    ),
    PresetGroup(
        "Sources",
        "What do other kinds of data cost?",
        (GENERATOR, GENERATOR_PROCESSES, FEATURES_REPLICATED, FEATURES_LOOKUP, SPARSE),
    ),
    PresetGroup(
        "Training",
        "What does the way of training change?",
        (in_graph_loop(), keras_fit(OPTIMISED.options), micro_batches()),
    ),
)
"""Every preset by what it is about, in the order in which lists show them."""

PRESETS: tuple[Preset, ...] = tuple(preset for group in PRESET_GROUPS for preset in group.presets)


def find_preset(name: str) -> Preset:
    """Return the bundled preset of that name.

    Raises:
        OptionsError: There is none.
    """
    return find_by_name(PRESETS, name)
