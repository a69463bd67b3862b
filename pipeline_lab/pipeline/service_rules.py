"""Rules about tf.data service: what it repeats, and what it costs on the machine that trains."""

from collections.abc import Iterator

from pipeline_lab.options.run_options import RunOptions
from pipeline_lab.pipeline.finding import Finding, Weight, stages_of
from pipeline_lab.stages.delivery import ServiceStage
from pipeline_lab.stages.order import RepeatStage
from pipeline_lab.stages.read import ReadStage


def _repeated_data(options: RunOptions) -> Iterator[Finding]:
    for index, stage in stages_of(options, ServiceStage):
        if stage.sharding == "off":
            copies = "each worker" if stage.address is not None else f"each of the {stage.workers} workers"
            yield Finding(
                "repeated-by-service",
                Weight.ADVICE,
                index,
                f"With sharding off {copies} hands out all the data in an order of its own, so an epoch holds every example "
                "once per worker; choose dynamic to divide the files.",
            )


def _too_few_files(options: RunOptions) -> Iterator[Finding]:
    files = len(options.file_sizes or ())
    for index, stage in stages_of(options, ServiceStage):
        if stage.sharding != "off" and stage.address is None and 0 < files < stage.workers:
            yield Finding(
                "idle-service-workers",
                Weight.PROBLEM,
                index,
                f"Files are divided among {stage.workers} workers, and there are only {files}: the others have nothing to "
                "do; write more files, or start fewer workers.",
            )


def _repeat_before_service(options: RunOptions) -> Iterator[Finding]:
    services = stages_of(options, ServiceStage)
    for index, stage in stages_of(options, RepeatStage):
        if stage.count is None and any(index < place and each.sharding == "dynamic" for place, each in services):
            yield Finding(
                "endless-in-service",
                Weight.FACT,
                index,
                "The endless repeat runs in the service, whose dynamic sharding mixes epochs: a worker begins the next one "
                "while others are still at the last; put repeat behind service to keep them apart.",
            )


def _loopback(options: RunOptions) -> Iterator[Finding]:
    for index, stage in stages_of(options, ServiceStage):
        if stage.address is None:
            yield Finding(
                "service-on-loopback",
                Weight.FACT,
                index,
                "The service runs in the job itself, so nothing gets faster: every element is copied and sent once more (0.6 "
                "to 1.7 ms of processor time per record were measured). It shows the cost; give the address of a dispatcher on other "
                "machines to gain from their cores.",
            )


def _reads_here(options: RunOptions) -> Iterator[Finding]:
    for index, stage in stages_of(options, ServiceStage):
        if stage.address is not None and isinstance(options.pipeline.stages[0], ReadStage):
            yield Finding(
                "service-reads-there",
                Weight.FACT,
                index,
                "The workers read the files themselves, under the same paths: they need the data on a disk that all share.",
            )


SERVICE_RULES = (_repeated_data, _too_few_files, _repeat_before_service, _loopback, _reads_here)
