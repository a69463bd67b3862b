"""``pipeline-lab capture``: windows of a running job."""

from typing import Annotated

import typer

from pipeline_lab.cli.arguments import StoreOption


def capture(
    address: Annotated[
        str,
        typer.Argument(metavar="HOST:PORT", help="TensorFlow's profiler server in the job.", show_default=False),
    ],
    seconds: Annotated[float, typer.Option(help="Length of a window in seconds.")] = 2.0,
    every: Annotated[float, typer.Option(help="Seconds between window starts.")] = 30.0,
    windows: Annotated[int, typer.Option(help="Number of windows.")] = 1,
    store: StoreOption = None,
) -> None:
    """Record windows from a running job and print the run's id; Ctrl-C keeps what was recorded.

    The job must have called `tf.profiler.experimental.server.start(PORT)` and must reach the store under the same path.
    """
    from pipeline_lab.cli.closing import close
    from pipeline_lab.cli.commands.run import check_end
    from pipeline_lab.runs.own_job_runs import RemoteCapture, launch_capture
    from pipeline_lab.runs.record import RunState
    from pipeline_lab.runs.store import open_store

    chosen = RemoteCapture(address, seconds, every, windows)
    from pipeline_lab.cli.following import follow_run, stop_requests

    with stop_requests() as requests:
        folder = launch_capture(open_store(store), chosen)
        record = follow_run(folder, requests)
    typer.echo(folder.id)
    if record.status.state is not RunState.FAILED:  # there is nothing to diagnose
        close(folder)
    check_end(folder, record)
