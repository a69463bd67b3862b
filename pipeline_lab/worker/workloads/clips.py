"""Clips of the audio workload: tones in noise, made as WAV files in a folder for each class, and the user's, checked.

``tf.audio.decode_wav`` takes 16-bit PCM only, and does not say which file it was given. Lengths are even over their
logarithm between the shortest and the longest: many short clips, few long ones.
"""

import wave
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.errors import DataError
from pipeline_lab.runs.run_documents import DataFile
from pipeline_lab.worker.job_context import StopRequest
from pipeline_lab.worker.workloads.data_files import DataRecipe, files_in
from pipeline_lab.workloads.audio import ENDINGS, AudioWorkload
from pipeline_lab.workloads.clip_lengths import clip_lengths_s

SAMPLE_BYTES = 2


def write_wav(path: Path, samples: NDArray[np.int16], rate_hz: int) -> None:
    """Write one channel of samples, shape (n,)."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(SAMPLE_BYTES)
        file.setframerate(rate_hz)
        file.writeframes(samples.astype("<i2").tobytes())


def check_wav(path: Path, rate_hz: int | None = None) -> None:
    """Make sure that a file can be decoded, from its header and its length; its samples are not read.

    Args:
        path: The file.
        rate_hz: The samples per second that it should have; None for any.

    Raises:
        DataError: It cannot, or has another rate; the text names the file.
    """
    try:
        with path.open("rb") as raw, wave.open(raw) as file:
            parameters: Any = file.getparams()
            left_bytes = path.stat().st_size - raw.tell()
    except (wave.Error, EOFError) as error:
        why = str(error) or "it ends inside its header"
        raise DataError(f"{path} is not a readable WAV file ({why}); write it again as 16-bit PCM.") from None
    except OSError as error:
        raise DataError(f"Cannot read the data file {path}: {error.strerror}.") from None
    if parameters.sampwidth != SAMPLE_BYTES:
        raise DataError(f"{path} has {8 * parameters.sampwidth}-bit samples; write it again as 16-bit PCM.")
    second_bytes = parameters.framerate * parameters.nchannels * SAMPLE_BYTES
    promised_bytes = parameters.nframes * parameters.nchannels * SAMPLE_BYTES
    if left_bytes < promised_bytes:
        raise DataError(
            f"{path} was cut short: its header promises {promised_bytes / second_bytes:.3g} s, but it ends after "
            f"{left_bytes / second_bytes:.3g} s; copy it again, or leave it out."
        )
    if not parameters.nframes:
        raise DataError(f"{path} holds no samples; record it again, or leave it out.")
    if rate_hz is not None and parameters.framerate != rate_hz:
        raise DataError(
            f"{path} has {parameters.framerate} samples per second; set workload.sample_rate_hz to that, not to {rate_hz}."
        )


LOWEST_PITCH, HIGHEST_PITCH = 0.05, 0.45
"""Of the classes' tones, in cycles per sample; from half a cycle on they could not be distinguished."""
TONE, NOISE = 4000, 4000
"""Amplitude of the tone and standard deviation of the noise, of 32,767."""
HEADER_BYTES = 44


def tones_recipe(workload: AudioWorkload) -> DataRecipe:
    """Describe the folders of the `tones` data."""
    classes = len(workload.clips_per_class)

    def write_folder(path: Path, label: int, count: int) -> None:
        generator = np.random.default_rng(label)
        path.mkdir()
        for number, seconds in enumerate(clip_lengths_s(workload, generator, count)):
            samples = make_clip(pitch(label, classes), round(seconds * workload.sample_rate_hz), generator)
            write_wav(path / f"clip-{number:07d}.wav", samples, workload.sample_rate_hz)

    return DataRecipe(
        name="tones",
        description={
            "data": "tones",
            "shortest": workload.shortest_s,
            "longest": workload.longest_s,
            "rate": workload.sample_rate_hz,
        },
        examples_per_file=workload.clips_per_class,
        record_bytes=HEADER_BYTES + round(SAMPLE_BYTES * workload.sample_rate_hz * workload.mean_clip_s),
        write_file=write_folder,
        ending="",
    )


def pitch(label: int, classes: int) -> float:
    """Return the pitch of a class, in cycles per sample."""
    return LOWEST_PITCH + (HIGHEST_PITCH - LOWEST_PITCH) * (label + 0.5) / classes


def make_clip(cycles_per_sample: float, samples: int, generator: np.random.Generator) -> NDArray[np.int16]:
    """Make a tone of random phase in noise, shape (samples,)."""
    phase = generator.uniform(0, 2 * np.pi)
    tone = TONE * np.sin(2 * np.pi * cycles_per_sample * np.arange(samples) + phase)
    noisy = tone + generator.normal(0, NOISE, samples)
    clip: NDArray[np.int16] = np.clip(noisy, -32_768, 32_767).astype(np.int16)
    return clip


def check_clips(folders: Sequence[DataFile], rate_hz: int, stop: StopRequest) -> None:
    """Make sure that a user's clips can be decoded and have the rate that the options name.

    Raises:
        DataError: One cannot, or has not; the text names it.
        StopRequestedError: The job was stopped meanwhile.
    """
    for folder in folders:
        stop.check()
        for path in files_in(Path(folder.path), ENDINGS):
            check_wav(path, rate_hz)


def find_damaged_clip(folder: Path, check: Callable[[], None] = lambda: None) -> DataError | None:
    """Name the first clip of a class that cannot be decoded; ``check`` raises to end the search."""
    for path in files_in(folder, ENDINGS):
        check()
        try:
            check_wav(path)
        except DataError as error:
            return error
    return None
