"""Which process of a job this is, as the launcher that started it says in the environment."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

_RANKS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")),
    ("PMI_RANK", "PMI_SIZE", ("PMI_JOBID", "HYDI_CONTROL_FD")),
    ("SLURM_PROCID", "SLURM_NTASKS", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
)
"""Variables of Open MPI, of MPICH and its kin, and of Slurm's ``srun``: rank, size, and what names the job."""


@dataclass(frozen=True)
class Place:
    """One process among those of a job.

    Attributes:
        rank: 0, 1, …; the first one owns the run.
        size: Number of processes.
        job: The same text in all of them, and in no other job that runs at the same time; empty for a lone process.
    """

    rank: int = 0
    size: int = 1
    job: str = ""

    @property
    def label(self) -> str:
        """What tells this process's files from the others'; empty for a lone process."""
        return f".rank{self.rank}" if self.size > 1 else ""


def find_place(environment: Mapping[str, str]) -> Place:
    """Read the launcher's variables; what they hold badly is as if it were not there."""
    for rank_name, size_name, job_names in _RANKS:
        rank, size = _number(environment.get(rank_name)), _number(environment.get(size_name))
        if rank is not None and size is not None and 0 <= rank < size and size > 1:
            names = [environment[name] for name in job_names if name in environment]
            return Place(rank, size, _job(environment, " ".join([rank_name, *names])))
    return _from_tf_config(environment) or Place()


def _from_tf_config(environment: Mapping[str, str]) -> Place | None:
    """Read ``TF_CONFIG``: chief and workers count, parameter servers and evaluators record runs of their own."""
    try:
        config = json.loads(environment.get("TF_CONFIG", ""))
        cluster, task = config["cluster"], config["task"]
        members = [(kind, index) for kind in ("chief", "worker") for index in range(len(cluster.get(kind, ())))]
        rank = members.index((task["type"], int(task["index"])))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if len(members) < 2:
        return None
    return Place(rank, len(members), _job(environment, json.dumps(cluster, sort_keys=True)))


def _job(environment: Mapping[str, str], text: str) -> str:
    return environment.get("PIPELINE_LAB_JOB") or text


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
