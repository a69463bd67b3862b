"""One search, from its first run to its last race, whoever proposes."""

from collections.abc import Callable

from pipeline_lab.options.tune import TuneOptions
from pipeline_lab.runs.store import RunFolder, RunStore
from pipeline_lab.tuning.climbing import Climb
from pipeline_lab.tuning.contest import Contest
from pipeline_lab.tuning.executors.executor import Executor, SearchStoppedError
from pipeline_lab.tuning.exploring import Exploration
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
        PipelineLabError: The start does not run, or nothing can be predicted from it.
        SearchStoppedError: It was asked to stop; the best so far is written down.
    """
    executor.check(options.start)
    trials = Trials(Ledger(folder.trials), executor, should_stop)
    contest = Contest(options, trials, History(folder.history), store)
    explores = options.explore or not options.start.is_assembled  # the model knows nothing of a user's own code
    proposer = Exploration(contest, model or Model()) if explores else Climb(contest, model or Model())
    try:
        contest.meet_the_start(proposer.run())
    except SearchStoppedError as stopped:
        contest.end(str(stopped))
        raise
