"""A user's own TFRecord files, whatever their Examples hold."""

from typing import Literal

from pydantic import Field, field_validator

from pipeline_lab.fields import Options
from pipeline_lab.options.record_features import RecordFeature, format_features, parse_features


class RecordsWorkload(Options):
    """Read your own TFRecord files, whatever features they hold, and train a light step on their numbers."""

    kind: Literal["records"] = "records"
    pattern: str = Field("", max_length=4096)
    """A glob of your files, such as /data/train-*.tfrecord."""
    features: str = Field("", max_length=20_000)
    """What each record holds, such as label:int64, vector:float32[128], tokens:int64[*], image:bytes; features that are
    not named are not parsed."""
    label: str | None = Field(None, max_length=200)
    """The feature, one int64, that the step learns to tell; without one it learns to copy its input."""
    classes: int = Field(10, ge=2, le=100_000)
    """More than the largest label."""

    @field_validator("features")
    @classmethod
    def _features_can_be_read(cls, text: str) -> str:
        return format_features(parse_features(text))

    def check(self) -> None:
        """Refuse what cannot be run.

        Raises:
            ValueError: Pattern or features are missing, or the label is none.
        """
        if not self.pattern:
            raise ValueError("pattern is empty; give the path of your files, such as /data/train-*.tfrecord")
        features = {feature.name: feature for feature in self.parsed_features}
        if not features:
            raise ValueError("features is empty; read them from the files (in the form, or by `options --records`)")
        if self.label is None:
            return
        if self.label not in features:
            raise ValueError(f"label is {self.label!r}, which is none of the features: {', '.join(features)}")
        if features[self.label] != RecordFeature(self.label, "int64", 1):
            raise ValueError(
                f"a label is one int64 per record, and {features[self.label]} is not; choose another, or none"
            )
        if len(features) == 1:
            raise ValueError("there is nothing but the label to train on; name another feature")

    @property
    def parsed_features(self) -> tuple[RecordFeature, ...]:
        return parse_features(self.features)

    @property
    def has_varied_features(self) -> bool:
        """Say whether some feature has more values in one record than in another."""
        return any(feature.length is None for feature in self.parsed_features)
