import numpy as np

from pipeline_lab.options.presets import AUDIO_BUCKETED, BASELINE, COVERING_SHUFFLE, UNEQUAL_FILES
from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.tuning.limits import Limits, Sampling, mixes_worse
from tests.tuning.test_space import at

CORES = 2


def sampling(start: RunOptions) -> Sampling:
    return Sampling(start, np.array(start.file_sizes), CORES)


def test_memory_and_threads_are_limits() -> None:
    limits = Limits(memory_bytes=100, threads=4)
    assert limits.refuse(100, 4) is None
    assert limits.refuse(101, 4) == "needs too much memory"
    assert limits.refuse(100, 5) == "needs too many threads"
    assert Limits().refuse(10**15, 10**6) is None


def test_what_does_not_touch_the_order_mixes_as_before() -> None:
    start = UNEQUAL_FILES.options
    assert not sampling(start).is_worse(at(start, map_calls="8", pool_threads="8", prefetch="2", map_over="batch"))


def test_files_one_after_the_other_mix_worse_than_in_turns() -> None:
    assert sampling(UNEQUAL_FILES.options).is_worse(at(UNEQUAL_FILES.options, files_at_once="1"))


def test_files_in_turns_mix_no_worse_than_one_after_the_other() -> None:
    start = BASELINE.options
    assert not sampling(start).is_worse(at(start, files_at_once="4"))


def test_a_shuffle_that_covers_the_data_makes_the_reading_order_indifferent() -> None:
    start = COVERING_SHUFFLE.options
    assert not sampling(start).is_worse(at(start, files_at_once="1"))


def test_clips_that_are_sorted_by_length_mix_as_well_whatever_the_reading_order() -> None:
    start = AUDIO_BUCKETED.options  # its shuffle covers the data
    assert not sampling(start).is_worse(at(start, files_at_once="4"))


def test_another_order_counts_as_worse_where_the_files_are_not_known() -> None:
    unknown = Sampling(BASELINE.options, None, CORES)
    assert unknown.is_worse(at(BASELINE.options, files_at_once="4"))
    assert not unknown.is_worse(at(BASELINE.options, prefetch="2"))


def test_a_number_that_cannot_be_told_is_no_good_mixing() -> None:
    nan = float("nan")
    poor, same = np.array([[0.5, 0.4]] * 8), np.array([[0.5, nan]] * 8)
    assert not mixes_worse(poor, poor)
    assert not mixes_worse(same, same)
    assert mixes_worse(poor, same)  # as good in what is known, but nobody knows the rest
    assert mixes_worse(same, poor)
    assert mixes_worse(same, same + 0.1)
    assert not mixes_worse(same + 0.1, same)
