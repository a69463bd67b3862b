"""Searches without a model, replayed on the measured grid: what they would have picked after n configurations."""

from collections.abc import Mapping

import numpy as np
import optuna

from pipeline_lab.tuning.space import Space

STARTUP = 5


def random_pick(table: Mapping[str, float], count: int, seed: int) -> str:
    """Return the best of n configurations drawn at random."""
    names = list(table)
    drawn = np.random.default_rng(seed).choice(len(names), size=min(count, len(names)), replace=False)
    return min((names[place] for place in drawn), key=table.__getitem__)


def tpe_pick(space: Space, table: Mapping[str, float], count: int, seed: int) -> str:
    """Return the best of n configurations that Optuna's TPE asks for, knobs as places on a line."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP))
    seen: dict[str, float] = {}
    while len(seen) < min(count, len(table)):
        trial = study.ask()
        setting = [knob.values[trial.suggest_int(knob.name, 0, len(knob.values) - 1)] for knob in space.knobs]
        configuration = space.at(setting)
        if configuration is None or configuration.name not in table:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            continue
        seen[configuration.name] = table[configuration.name]
        study.tell(trial, float(np.log(table[configuration.name])))
    return min(seen, key=seen.__getitem__)
