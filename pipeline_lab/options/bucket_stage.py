"""Batches of examples that are about as long as each other."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from pipeline_lab.fields import Options, parse_file_sizes, parse_numbers


class BucketStage(Options):
    """Put clips into batches with others of about their length; only shorter ones of the same bucket are padded."""

    stage: Literal["bucket_by_sequence_length"] = "bucket_by_sequence_length"
    boundaries_s: Annotated[
        tuple[Annotated[float, Field(gt=0, le=86_400)], ...],
        BeforeValidator(parse_numbers),
        Field(min_length=1, max_length=100),
    ] = (10.0, 20.0, 40.0, 80.0)
    """Where one bucket ends and the next begins, s, written like 10,20,40."""
    batch_sizes: Annotated[
        tuple[Annotated[int, Field(ge=1, le=1_000_000)], ...],
        BeforeValidator(parse_file_sizes),
        Field(min_length=2, max_length=101),
    ] = (32,) * 5
    """Clips in a batch of each bucket, the shortest first: one more than boundaries, written like 32,16,8 or 5x32."""
    drop_remainder: bool = False
    """Throw away what is left in a bucket at the end of the data: the rarest lengths would suffer most."""

    @model_validator(mode="after")
    def _buckets_follow_each_other(self) -> "BucketStage":
        for first, second in zip(self.boundaries_s, self.boundaries_s[1:], strict=False):
            if second <= first:
                raise ValueError(
                    f"boundaries_s must rise, but {second:g} comes after {first:g}; sort them, each one once"
                )
        buckets = len(self.boundaries_s) + 1
        if len(self.batch_sizes) != buckets:
            raise ValueError(
                f"{buckets - 1} boundaries make {buckets} buckets, but batch_sizes has {len(self.batch_sizes)}; give one "
                "for each bucket"
            )
        return self

    @property
    def size(self) -> int:
        """Examples in a batch, about: the mean over the buckets."""
        return round(sum(self.batch_sizes) / len(self.batch_sizes))
