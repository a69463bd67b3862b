"""Clips of different lengths: a WAV file becomes a spectrum for each frame, as many as the clip is long."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline_lab.fields import FileSizes
from pipeline_lab.stages.batches import BucketStage
from pipeline_lab.stages.code import Code, assign_call
from pipeline_lab.stages.pipeline import PipelineOptions
from pipeline_lab.stages.read import PerFile, folder_code, read_lines
from pipeline_lab.stages.stage import Stage
from pipeline_lab.stages.stage_values import FLOAT_BYTES, LABEL_AND_ID_BYTES, Element, Position, Remark
from pipeline_lab.workloads.workload import PATH_BYTES, Workload, WorkloadSource, check_folder, class_by_class

if TYPE_CHECKING:
    from pipeline_lab.stages.pipeline import StageSequence
    from pipeline_lab.statistics.streams import IntArray


HALF_A_FRAME = 0.5
"""What of a clip's last frame is filled up with silence, on average."""


class AudioWorkload(Workload):
    """Train a small network on clips of different lengths, WAV files in a subfolder for each class."""

    kind: Literal["audio"] = "audio"
    data: Literal["tones", "folder"] = "tones"
    """``tones``: a tone in noise whose pitch encodes the class; ``folder``: your own WAV files."""
    folder: str | None = Field(None, max_length=4096)
    """For ``data = folder``: the folder of the subfolders, each with the WAV files of one class."""
    clips_per_class: FileSizes = (40,) * 8
    """Clips of each class, written 100,200 or 8x40; `read` visits the classes as it would visit files."""
    shortest_s: float = Field(5.0, gt=0, le=3600)
    longest_s: float = Field(180.0, gt=0, le=3600)
    """Lengths are even over their logarithm: as many clips from 5 to 10 s as from 90 to 180 s, half below 30 s."""
    sample_rate_hz: int = Field(1000, ge=100, le=192_000)
    """Samples per second; speech has 16000, fewer make smaller files."""
    frame_samples: int = Field(128, ge=8, le=16_384)
    """Samples that become one frame, a spectrum; the length of a clip is counted in frames."""
    classes: int = Field(10, ge=2, le=100_000)
    """For ``data = folder``: outputs of the network, at least as many as there are subfolders."""

    matters: ClassVar = ("data", "folder", "clips_per_class", "shortest_s", "longest_s")
    own_stages: ClassVar = ("parse",)
    shown_with: ClassVar = {
        "folder": ("data", ("folder",)),
        "classes": ("data", ("folder",)),
        "clips_per_class": ("data", ("tones",)),
        "shortest_s": ("data", ("tones",)),
        "longest_s": ("data", ("tones",)),
    }
    sorts_by_length: ClassVar = True
    step_options: ClassVar = frozenset({"precision"})

    def source(self, pipeline: PipelineOptions, *, has_probe: bool) -> WorkloadSource:
        code = folder_code(ENDINGS) + Code(constants=(f"FRAME = {self.frame_samples}",), functions=(_PARSE.strip(),))
        return WorkloadSource(
            about=(
                "files are folders, one for each class, with the WAV files of its clips.",
                'Elements are batches of {"spectrum": float32, "length": frames, "label", "id"}.',
            ),
            code=code,
            written={
                "read": lambda read: read_lines(read, PerFile.FOLDER),
                "bucket_by_sequence_length": lambda stage: [bucket_line(stage, self)],
            },
            over="over folders of WAV files",
        )

    def check(self, pipeline: PipelineOptions) -> None:
        stage = pipeline.first(BucketStage)
        frames = () if stage is None else self.boundaries_in_frames(stage)
        for number in range(1, len(frames)):
            if stage is not None and frames[number] == frames[number - 1]:
                raise ValueError(
                    f"the boundaries {stage.boundaries_s[number - 1]:g} and {stage.boundaries_s[number]:g} s lie in one "
                    f"frame ({self.frame_samples} samples); set them further apart, or make frames shorter"
                )

    @model_validator(mode="after")
    def _fields_fit(self) -> "AudioWorkload":
        check_folder(self.data, self.folder)
        if self.longest_s < self.shortest_s:
            raise ValueError(f"the longest clips ({self.longest_s:g} s) are shorter than the shortest; raise longest_s")
        return self

    @property
    def file_sizes(self) -> tuple[int, ...] | None:
        return self.clips_per_class if self.data == "tones" else None

    @property
    def users_folder(self) -> str | None:
        return self.folder

    @property
    def has_varied_lengths(self) -> bool:
        return True

    @property
    def mean_clip_s(self) -> float:
        """Mean of lengths that are even over their logarithm, s."""
        shortest, longest = self.shortest_s, self.longest_s
        return shortest if shortest == longest else (longest - shortest) / math.log(longest / shortest)

    @property
    def record_bytes(self) -> int:
        return PATH_BYTES

    def apply(self, stage: str, element: Element) -> Element:
        if stage != "parse":
            return element
        frames = self.mean_clip_s * self.sample_rate_hz / self.frame_samples + HALF_A_FRAME
        size_bytes = round(FLOAT_BYTES * frames * (self.frame_samples // 2 + 1)) + LABEL_AND_ID_BYTES
        return replace(element, example_bytes=size_bytes if self.data == "tones" else None, is_decoded=True)

    def padding_share(self, stage: Stage) -> float | None:
        from pipeline_lab.workloads import clip_lengths

        return clip_lengths.predict_padding(stage, self)

    def buckets(self, stages: "StageSequence", file_sizes: tuple[int, ...] | None) -> "IntArray | None":
        from pipeline_lab.workloads import clip_lengths

        stage = stages.first(BucketStage)
        return None if stage is None or file_sizes is None else clip_lengths.buckets_of(self, stage, file_sizes)

    def remarks(self, places: Sequence[Position]) -> Iterator[Remark]:
        return class_by_class(places) if self.data == "folder" else iter(())

    @property
    def lengths(self) -> str:
        return f"clips of {self.shortest_s:g} to {self.longest_s:g} s"

    def boundaries_in_frames(self, stage: BucketStage) -> tuple[int, ...]:
        """Return the boundaries of the buckets in frames, rounded up."""
        return tuple(math.ceil(each * self.sample_rate_hz / self.frame_samples) for each in stage.boundaries_s)


ENDINGS = (".wav", ".WAV")
"""Of the files that hold clips."""

_PARSE = '''
def parse(clip: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Decode one WAV file into a spectrum for each frame, float32 (frames, FRAME // 2 + 1)."""
    samples, _ = tf.audio.decode_wav(tf.io.read_file(clip["path"]), desired_channels=1)
    frames = tf.signal.frame(samples[:, 0], FRAME, FRAME, pad_end=True)
    spectrum = tf.math.log1p(tf.abs(tf.signal.rfft(frames)))
    length = tf.shape(spectrum)[0]
    return {"spectrum": spectrum, "length": length, "label": clip["label"], "id": clip["id"]}
'''


def bucket_line(stage: BucketStage, workload: AudioWorkload) -> str:
    """Write the stage that batches clips by their length."""
    boundaries = ", ".join(str(each) for each in workload.boundaries_in_frames(stage))
    arguments = [
        'lambda clip: clip["length"]',
        f"bucket_boundaries=[{boundaries}]",
        f"bucket_batch_sizes=[{', '.join(str(each) for each in stage.batch_sizes)}]",
        *(["drop_remainder=True"] if stage.drop_remainder else []),
    ]
    seconds = ", ".join(f"{each:g}" for each in stage.boundaries_s)
    return assign_call("dataset.bucket_by_sequence_length", arguments, f"in frames: {seconds} s")
