"""Parts from what TensorFlow 2.2 to 2.8 stored beside a trace, for logs whose trace itself is gone."""

import numpy as np

from pipeline_lab.analysis import tables
from pipeline_lab.analysis.diagnosis.fold import TraceParts
from pipeline_lab.analysis.idle.idle_gaps import IdleGaps
from pipeline_lab.analysis.input.input_stalls import WAIT_TABLE, InputStalls
from pipeline_lab.analysis.machine.allocators import NO_ALLOCATIONS
from pipeline_lab.analysis.sampling.file_reads import FileReads
from pipeline_lab.analysis.steps import step_breakdown
from pipeline_lab.analysis.steps.recorded_steps import NO_STEPS, STEP_TABLE, Steps
from pipeline_lab.analysis.steps.step_breakdown import PARTS, PARTS_TABLE, StepBreakdown
from pipeline_lab.errors import Unavailable
from pipeline_lab.trace.legacy.stored_analysis import DerivedProfile, StoredSteps

MARKER = "TensorFlow's stored step table"
NO_RETRACES = Unavailable("The log holds only what TensorFlow derived from its trace, so what was traced is not known.")
NO_EVENTS: IdleGaps | Unavailable = Unavailable(
    "The log holds only what TensorFlow derived from its trace, so single gaps are not known; keep the *.xplane.pb file "
    "beside it."
)

NO_STAGES = Unavailable(
    "The log holds only what TensorFlow derived from its trace, so the stages of the pipeline are not known; keep the "
    "*.xplane.pb file beside it."
)
NO_READS = Unavailable(
    "The log holds only what TensorFlow derived from its trace, so which files were read is not known; keep the "
    "*.xplane.pb file beside it."
)


def read_stored(profile: DerivedProfile) -> TraceParts:
    """Turn one host's stored table into parts; its steps are laid one after another, for it stores no times."""
    steps = profile.steps
    missing = Unavailable(NO_STEPS)
    return TraceParts(
        name=str(profile.path),
        host=profile.host,
        window="",
        origin_epoch_ns=None,
        start_ns=0,
        end_ns=int(steps.total_ns.sum()),
        size_bytes=profile.path.stat().st_size if profile.path.exists() else 0,
        events=0,
        salvage=None,
        unseen_device=False,
        steps=_steps(profile) if steps.count else missing,
        input_stalls=_stalls(steps) if steps.count else missing,
        step_breakdown=_breakdown(profile) if steps.count else missing,
        retraces=NO_RETRACES,
        idle_gaps=NO_EVENTS,
        tf_data=NO_STAGES,
        allocators=Unavailable(NO_ALLOCATIONS),
        reads=FileReads({}, {}),
    )


def _steps(profile: DerivedProfile) -> Steps:
    steps = profile.steps
    end = np.cumsum(steps.total_ns)
    on_device = steps.device_compute_ns + steps.device_to_device_ns + steps.collective_ns + steps.output_ns
    table = tables.build(
        STEP_TABLE,
        steps.count,
        host=profile.host,
        window=0,
        step=steps.number,
        start_ns=end - steps.total_ns,
        end_ns=end,
        wait_ns=steps.input_wait_ns,
        exposed_ns=steps.input_wait_ns,
        busy_ns=on_device if on_device.any() else steps.host_compute_ns,
    )
    return Steps(MARKER, None, table, first_step_only=False)


def _stalls(steps: StoredSteps) -> InputStalls:
    """Read the stored wait; TensorFlow gives each moment of a step to one part, so all of it counts as exposed."""
    wait_ns = int(steps.input_wait_ns.sum())
    return InputStalls(
        wait_ns=wait_ns,
        exposed_ns=wait_ns,
        step_ns=int(steps.total_ns.sum()),
        events=None,
        event_sum_ns=None,
        event_names=(),
        table=tables.empty(WAIT_TABLE),
    )


def _breakdown(profile: DerivedProfile) -> StepBreakdown:
    steps = profile.steps
    end = np.cumsum(steps.total_ns)
    known = {
        "input_wait_ns": steps.input_wait_ns,
        "host_to_device_ns": steps.host_to_device_ns,
        "device_compute_ns": steps.device_compute_ns,
        "device_copy_ns": steps.device_to_device_ns + steps.output_ns,
        "collective_ns": steps.collective_ns,
        "compile_ns": steps.compile_ns,
        "dispatch_ns": steps.host_prepare_ns,
        "host_compute_ns": steps.host_compute_ns,
        "other_ns": steps.unknown_ns,
    }
    return step_breakdown.sum_up(
        tables.build(
            PARTS_TABLE,
            steps.count,
            host=profile.host,
            window=0,
            step=steps.number,
            start_ns=end - steps.total_ns,
            end_ns=end,
            **{part: known.get(part, 0) for part in PARTS},
        )
    )
