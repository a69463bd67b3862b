"""What a run does in each phase that its events name, in the words of the command line and the app."""

_WORDS = {
    "importing": "loading TensorFlow",
    "data": "preparing data",
    "building": "building pipeline and model",
    "calibrating": "timing the step and the pipeline alone",
    "warmup": "warming up",
    "training": "training",
    "evaluating": "evaluating",
    "racing": "racing",
    "searching": "searching",
    "recording": "recording a profile window of each arm",
    "capturing": "recording windows of the job",
    "finishing": "writing the last results",
}


def describe_phase(phase: str) -> str:
    """Say what a run does in a phase; one that this version does not know is named as it is."""
    return _WORDS.get(phase, phase)
