"""One search, from its first run to its last race, whoever proposes."""

from collections.abc import Callable

from pipeline_lab.options.tune_options import TuneOptions
from pipeline_lab.runs.store import RunFolder, RunStore
from pipeline_lab.tuning.climbing import Climb, NoModelError
from pipeline_lab.tuning.contest import Contest
from pipeline_lab.tuning.executors.executor import Executor, SearchStoppedError
from pipeline_lab.tuning.exploring import BATCH, Exploration
from pipeline_lab.tuning.history import History
from pipeline_lab.tuning.modelling import Model
from pipeline_lab.tuning.trials import Ledger, Trials


def search(
    folder: RunFolder,
    options: TuneOptions,
    store: RunStore,
    executor: Executor,
    should_stop: Callable[[], bool],
    model: Model | None = None,
) -> None:
    """Search until the budget is spent or nothing better is in sight; what was found so far lies in the folder.

    Args:
        folder: The search's own run; trials that it holds already are not measured again.
        options: What to search.
        store: Where the trials go.
        executor: Who measures them.
        should_stop: Asked again and again.
        model: What predicts; None for the real one.

    Raises:
        PipelineLabError: The start does not run.
        SearchStoppedError: It was asked to stop; the best so far is written down.
    """
    executor.check(options.start)
    trials = Trials(Ledger(folder.trials), executor, should_stop)
    contest = Contest(options, trials, History(folder.history), store)
    try:
        contest.meet_the_start(_look_for_better(contest, Climb(contest, model or Model())))
    except SearchStoppedError as stopped:
        contest.end(str(stopped))
        raise


def _look_for_better(contest: Contest, climb: Climb) -> str:
    """Follow the model, or explore where that is asked for or the model has no answer; return why it ended."""
    if contest.options.explore:
        return Exploration(contest).run(climb.suggest(BATCH))
    try:
        return climb.run()
    except NoModelError:
        return Exploration(contest).run(())
