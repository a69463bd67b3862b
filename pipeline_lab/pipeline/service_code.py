"""The line of ``make_dataset`` that hands a pipeline to tf.data service, and the service itself where none is named."""

from pipeline_lab.options.pipeline import PipelineOptions
from pipeline_lab.options.service_stage import ServiceStage
from pipeline_lab.pipeline.code import INDENT, Code, assign_call, quote, wanted

_START = '''\
def data_service(workers: int) -> str:
    """Start tf.data service in this process, once, and return its address."""
    service = tf.data.experimental.service
    if not SERVERS:
        dispatcher = service.DispatchServer()
        address = dispatcher.target.partition("://")[2]
        config = service.WorkerConfig(dispatcher_address=address)
        SERVERS.extend([dispatcher, *(service.WorkerServer(config) for _ in range(workers))])
    return SERVERS[0].target'''


def service_code(pipeline: PipelineOptions) -> Code:
    """Return what starts the service, if the pipeline needs one of its own."""
    stage = pipeline.find("service")
    if not isinstance(stage, ServiceStage) or stage.address is not None:
        return Code()
    return Code(constants=("SERVERS = []  # they live as long as the process",), functions=(_START,))


def service_lines(stage: ServiceStage) -> list[str]:
    """Write the stage."""
    address = f"data_service({stage.workers})" if stage.address is None else quote(f"grpc://{stage.address}")
    plain = wanted({"compression=None": not stage.compression})
    arguments = [f"service.ShardingPolicy.{stage.sharding.upper()}", address, *plain]
    return [
        f"{INDENT}service = tf.data.experimental.service",
        assign_call("dataset.apply", [f"service.distribute({', '.join(arguments)})"]),
    ]
