"""WAV files and folders of classes, without TensorFlow."""

import wave
from pathlib import Path

import numpy as np
import pytest

from pipeline_lab.errors import DataError
from pipeline_lab.worker.job_context import StopRequest
from pipeline_lab.worker.note.event_log import EventLog
from pipeline_lab.worker.workloads.clips import (
    check_clips,
    check_wav,
    find_damaged_clip,
    make_clip,
    pitch,
    tones_recipe,
    write_wav,
)
from pipeline_lab.worker.workloads.data_files import cached_files, find_class_folders
from pipeline_lab.workloads.audio import AudioWorkload
from pipeline_lab.workloads.clip_lengths import clip_lengths_s

SILENCE = np.zeros(1000, np.int16)
SMALL = AudioWorkload(clips_per_class=(2, 1), shortest_s=0.5, longest_s=2, sample_rate_hz=1000)


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    for name in ("cat/b.wav", "cat/a.wav", "dog/a.wav", "dog/notes.txt"):
        path = tmp_path / "clips" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_wav(path, SILENCE, 1000)
    return tmp_path / "clips"


def test_a_clip_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", np.array([0, -1, 32_767], np.int16), 16_000)
    with wave.open(str(tmp_path / "a.wav")) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
        assert file.readframes(3) == b"\0\0\xff\xff\xff\x7f"
    check_wav(tmp_path / "a.wav", 16_000)


def test_a_clip_that_cannot_be_decoded_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    write_wav(path, SILENCE, 1000)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1500])
    with pytest.raises(DataError, match=r"a.wav was cut short: its header promises 1 s, but it ends after 0.25 s"):
        check_wav(path)
    path.write_bytes(whole[:20])
    with pytest.raises(DataError, match=r"a.wav is not a readable WAV file"):
        check_wav(path)
    path.write_bytes(b"no sound")
    with pytest.raises(DataError, match=r"a.wav is not a readable WAV file"):
        check_wav(path)
    write_wav(path, SILENCE[:0], 1000)
    with pytest.raises(DataError, match=r"a.wav holds no samples; record it again, or leave it out"):
        check_wav(path)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 3, 1000, 0, "NONE", ""))
        file.writeframes(b"\0" * 30)
    with pytest.raises(DataError, match=r"a.wav has 24-bit samples; write it again as 16-bit PCM"):
        check_wav(path)


def test_another_rate_than_the_options_name_is_told(clips: Path) -> None:
    folders = find_class_folders(str(clips), (".wav",), 2, StopRequest())
    check_clips(folders, 1000, StopRequest())
    with pytest.raises(
        DataError, match=r"a.wav has 1000 samples per second; set workload.sample_rate_hz to that, not to"
    ):
        check_clips(folders, 16_000, StopRequest())


def test_the_damaged_clip_of_a_class_is_found(clips: Path) -> None:
    (clips / "dog" / "a.wav").write_bytes(b"RIFF")
    assert find_damaged_clip(clips / "cat") is None
    assert "dog/a.wav is not a readable WAV file" in str(find_damaged_clip(clips / "dog"))


def test_subfolders_are_classes_in_the_order_of_their_names(clips: Path) -> None:
    found = find_class_folders(str(clips), (".wav",), 2, StopRequest())
    assert [(Path(each.path).name, each.records, each.size_bytes) for each in found] == [
        ("cat", 2, 4088),
        ("dog", 1, 2044),
    ]


def test_folders_that_hold_no_classes_say_so(clips: Path) -> None:
    with pytest.raises(DataError, match=r"There is no folder .*nowhere"):
        find_class_folders(str(clips / "nowhere"), (".wav",), 2, StopRequest())
    with pytest.raises(DataError, match=r"cat has no subfolder; put the files of each class into one of its own"):
        find_class_folders(str(clips / "cat"), (".wav",), 2, StopRequest())
    with pytest.raises(DataError, match=r"has 2 subfolders, one for each class, but workload.classes is 1; raise it"):
        find_class_folders(str(clips), (".wav",), 1, StopRequest())
    with pytest.raises(DataError, match=r"cat holds no file ending in .jpg, .png; fill it, or remove it"):
        find_class_folders(str(clips), (".jpg", ".png"), 2, StopRequest())


def test_our_own_clips_are_tones_in_a_folder_for_each_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_LAB_CACHE", str(tmp_path))
    files = cached_files(tones_recipe(SMALL), EventLog(tmp_path / "events.jsonl"), StopRequest())
    assert [file.records for file in files] == [2, 1]
    first, second = sorted(Path(files[0].path).iterdir())
    check_wav(first, 1000)
    assert files[0].size_bytes == first.stat().st_size + second.stat().st_size
    with wave.open(str(first)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    assert 500 <= len(samples) <= 2000
    loudest = np.abs(np.fft.rfft(samples)).argmax() / len(samples)
    assert loudest == pytest.approx(pitch(0, 2), abs=0.005)


def test_lengths_are_even_over_their_logarithm() -> None:
    lengths = np.array(clip_lengths_s(AudioWorkload(), np.random.default_rng(0), 20_000))
    assert (lengths.min() >= 5, lengths.max() <= 180) == (True, True)
    assert np.mean(lengths < 30) == pytest.approx(0.5, abs=0.02)  # 30 s is the geometric mean of 5 and 180
    assert lengths.mean() == pytest.approx(AudioWorkload().mean_clip_s, rel=0.02)


def test_a_clip_fits_into_sixteen_bits() -> None:
    clip = make_clip(0.1, 5000, np.random.default_rng(0))
    assert clip.dtype == np.int16
    assert 2000 < clip.std() < 8000
