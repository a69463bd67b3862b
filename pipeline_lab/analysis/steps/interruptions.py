"""What keeps a job from training now and then, such as checkpoints, summed up over the job."""

from typing import Self

from pipeline_lab.analysis.activity.intervals import IntArray
from pipeline_lab.analysis.declaring.declaration import Document, to_ms
from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import Unavailable


@dataclass(frozen=True)
class Interruptions:
    """Interruptions between the steps of a job.

    Attributes:
        count: How many there were.
        total_ns, longest_ns: How long they took.
        job_ns: The job's time that they are a part of.
    """

    count: int
    total_ns: int
    longest_ns: int
    job_ns: int

    @classmethod
    def of(cls, length_ns: IntArray, job_ns: int) -> Self:
        """Sum up lengths, one at least, shape (n,)."""
        return cls(len(length_ns), int(length_ns.sum()), int(length_ns.max()), job_ns)

    @property
    def percent(self) -> float:
        """Share of the job's time that passed in them."""
        return 100.0 * self.total_ns / self.job_ns

    def to_json(self) -> Document:
        """Return their part of the document."""
        return {
            "count": self.count,
            "total_ms": to_ms(self.total_ns),
            "longest_ms": to_ms(self.longest_ns),
            "share_percent": self.percent,
        }


def sum_percent(*kinds: Interruptions | Unavailable) -> float:
    """Return the share of the job's time that passed in several kinds of interruptions; those that were not noted took none."""
    return sum(kind.percent for kind in kinds if not isinstance(kind, Unavailable))
