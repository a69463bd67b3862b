"""WAV files: written for the lab's own clips, and checked before TensorFlow decodes them.

``tf.audio.decode_wav`` takes 16-bit PCM only, and does not say which file it was given.
"""

import wave
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline_lab.errors import DataError

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
        raise DataError(f"{path} is no WAV file that can be read ({why}); write it again as 16-bit PCM.") from None
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
