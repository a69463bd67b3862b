import pyarrow as pa
import pytest

from pipeline_lab.analysis.machine import gpu_clocks
from pipeline_lab.analysis.machine.gpu_clocks import GpuClocks
from pipeline_lab.analysis.verdict.findings import find_all_findings
from pipeline_lab.errors import TraceIncompleteError
from pipeline_lab.runs.run_tables import RESOURCES
from tests.support import results


def resources(*rows: tuple[int | None, bool | None]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"gpu_clock_mhz": clock, "gpu_slowed": slowed} for clock, slowed in rows], RESOURCES.schema
    )


def test_clocks_are_summed_up_over_the_looks_that_told_them():
    found = gpu_clocks.measure_clocks(
        resources((None, None), (1980, False), (1200, True), (1900, False), (1950, False))
    )
    assert found == GpuClocks(samples=4, lowest_mhz=1200, median_mhz=1925, highest_mhz=1980, slowed_percent=25.0)
    assert gpu_clocks.measure_clocks(resources((1980, None))).slowed_percent is None


def test_without_a_gpu_nothing_is_made_up():
    with pytest.raises(TraceIncompleteError, match="there was none"):
        gpu_clocks.measure_clocks(resources((None, None)))


@pytest.mark.parametrize(("slowed", "kinds"), [(4.0, []), (6.0, ["gpu-slowed"]), (None, [])])
def test_a_gpu_that_is_held_back_is_worth_a_finding(slowed, kinds):
    found = find_all_findings(results.diagnosis(gpu_clocks=GpuClocks(100, 1200, 1900, 1980, slowed)))
    assert [one.kind for one in found if one.kind == "gpu-slowed"] == kinds
