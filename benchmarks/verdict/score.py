"""How often the verdict was right, and what was taken for what."""

from collections import Counter

from benchmarks.verdict.plan import Planted
from benchmarks.verdict.record import Answer

Answers = list[tuple[Planted, Answer]]

NEEDED_PERCENT = 95.0


def report(answers: Answers) -> bool:
    """Print the confusion table and every mistake; say whether the budget is met."""
    _print_table(answers)
    mistakes = [(job, answer) for job, answer in answers if not answer.is_right(job)]
    for job, answer in mistakes:
        print(
            f"wrong: {job.name} [{job.set}, {answer.repetition + 1}], {answer.confidence} confidence: "
            f"{'; '.join(answer.mistakes(job))}"
        )
        print(f"       {answer.sentence}  ({answer.run})")
    sure = [answer for _, answer in mistakes if answer.confidence == "high"]
    percent = 100.0 * (len(answers) - len(mistakes)) / len(answers)
    print(
        f"\n{len(answers) - len(mistakes)} of {len(answers)} right ({percent:.1f} %, asked for {NEEDED_PERCENT:g} %), "
        f"{len(sure)} wrong with high confidence (asked for 0)."
    )
    return percent >= NEEDED_PERCENT and not sure


def _print_table(answers: Answers) -> None:
    """Print planted against found, each as ``class/cause``."""
    pairs = Counter((_label(job.verdict_class, job.causes), _found(answer)) for job, answer in answers)
    width = max(len(planted) for planted, _ in pairs)
    print(f"\n{'planted':<{width}}  found")
    for planted in sorted({planted for planted, _ in pairs}):
        found = {label: count for (row, label), count in pairs.items() if row == planted}
        print(f"{planted:<{width}}  {', '.join(f'{label} ×{count}' for label, count in sorted(found.items()))}")
    print()


def _label(verdict_class: str, causes: tuple[str, ...]) -> str:
    return f"{verdict_class}/{'|'.join(causes)}" if causes else verdict_class


def _found(answer: Answer) -> str:
    return _label(answer.verdict_class, (answer.cause,) if answer.cause else ())
