"""What overlap alone would save of a step, and what more calls at once in the blamed stage alone would.

Where nothing works ahead, a step takes what its input takes and then the rest. Overlap leaves the longer of the two;
``k`` times as many calls at once leave the rest and the input, of which the stage's part is divided by ``k``. Neither
makes the job do with fewer cores than it keeps busy.
"""

from pipeline_lab.analysis.input_facts import InputFacts

LEAST_AT_ONCE = 2.0
"""Times as many calls as now, where the pool's threads are not known or all taken: a pool can be made larger."""


def overlap_gain(facts: InputFacts) -> float:
    """Return the share of the step that working ahead would save at best, 0 to 1; 0 where a stage does so already."""
    if facts.works_ahead:
        return 0.0
    return min(facts.waiting_share, 1.0 - facts.waiting_share, _idle_cores(facts))


def parallel_gain(facts: InputFacts) -> float:
    """Return the share of the step that more calls at once in the blamed stage would save at best, 0 to 1."""
    saved = facts.waiting_share * facts.blamed.share * (1.0 - 1.0 / times_as_many(facts))
    return min(saved, _idle_cores(facts))


def times_as_many(facts: InputFacts) -> float:
    """Return how many times as many calls of the blamed stage the pool's threads could run."""
    return max(LEAST_AT_ONCE, (facts.pool_threads or 0) / max(1.0, facts.blamed.parallelism or 1.0))


def _idle_cores(facts: InputFacts) -> float:
    """Return the share of the cores that the job leaves idle, 1 where that is not known."""
    return 1.0 if facts.processor is None else max(0.0, 1.0 - facts.processor.own_share)
