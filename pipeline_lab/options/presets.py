"""Named option sets that reproduce questions from the field."""

from pipeline_lab.options.audio_presets import AUDIO_PRESETS
from pipeline_lab.options.order_presets import cached, first_files, micro_batches, small_data, wrong_order
from pipeline_lab.options.pipeline import (
    AugmentStage,
    BatchStage,
    LookupStage,
    MapStage,
    ParseStage,
    PipelineOptions,
    PrefetchStage,
    ReadStage,
    RepeatStage,
    ShuffleStage,
    Stage,
    ViewsStage,
)
from pipeline_lab.options.preset import Preset, PresetGroup, find_by_name
from pipeline_lab.options.run import RunOptions
from pipeline_lab.options.training import TrainingOptions
from pipeline_lab.options.training_presets import (
    changing_shapes,
    evaluation_kept,
    evaluation_rebuilt,
    in_graph_loop,
    keras_fit,
    random_shards,
)
from pipeline_lab.workloads.features import FeaturesWorkload
from pipeline_lab.workloads.generator import GeneratorWorkload
from pipeline_lab.workloads.images import ImagesWorkload
from pipeline_lab.workloads.sparse import SparseWorkload
from pipeline_lab.workloads.synthetic import SyntheticWorkload
from pipeline_lab.workloads.workload import Workload

_AUGMENT = AugmentStage(pad=4, crop=32, flip=True, rotate_degrees=15, cutout=8, normalise=True)
_PARALLEL_AUGMENT = _AUGMENT.model_copy(update={"num_parallel_calls": "autotune"})
_UNEQUAL = SyntheticWorkload(examples_per_file=(1000, 2000, 3000), map_ms=0.05, compute_ms=5.0)
_OPEN_EIGHT = ReadStage(mode="interleave", shuffle_files=True, cycle_length=8)
_VIEWS = ViewsStage(num_parallel_calls="autotune")
_CAPTIONS = FeaturesWorkload()
_OPEN_ALL = ReadStage(mode="interleave", shuffle_files=True, cycle_length=4)
_MIX = ShuffleStage(buffer_size=1000)
_IMAGES = ImagesWorkload(data="digits", image_size=32, examples_per_file=(1024,) * 8)


def _preset(name: str, question: str, workload: Workload, pipeline: PipelineOptions) -> Preset:
    return Preset(name, question, RunOptions(name=name, workload=workload, pipeline=pipeline))


def _stages(*stages: Stage) -> tuple[Stage, ...]:
    return stages


BASELINE = _preset(
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

OPTIMISED = _preset(
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

SYNTHETIC = _preset(
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

UNEQUAL_FILES = _preset(
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

SAMPLED_BY_SIZE = _preset(
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

EQUAL_SHARDS = _preset(
    "equal-shards",
    "What if the data of `unequal-files` is written again as shards of equal size? Interleaved as before, each file is "
    "used at the same rate to the end.",
    _UNEQUAL.model_copy(update={"examples_per_file": (2000,) * 3}),
    UNEQUAL_FILES.options.pipeline,
)

COVERING_SHUFFLE = _preset(
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

VIEWS_TOGETHER = _preset(
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

VIEWS_APART = _preset(
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

FEATURES_REPLICATED = _preset(
    "features-replicated",
    "What does it cost to store an image's vector with each of its 20 captions? 4096 numbers in every record, on disk and "
    "through every stage.",
    _CAPTIONS.model_copy(update={"layout": "replicated"}),
    PipelineOptions(
        stages=_stages(_OPEN_ALL, _MIX, RepeatStage(), BatchStage(size=128), ParseStage(), PrefetchStage())
    ),
)

FEATURES_LOOKUP = _preset(
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

GENERATOR = _preset(
    "generator",
    "What does from_generator cost? Python makes one example after the other; set `workload.examples_at_once` to the "
    "batch size to see what making whole batches saves.",
    GeneratorWorkload(),
    PipelineOptions(stages=_stages(ReadStage(), RepeatStage(), BatchStage(size=32), PrefetchStage(buffer_size=2))),
)

GENERATOR_PROCESSES = _preset(
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
