"""Uploads of logs: streamed to disk file by file, limited in size, and deleted when incomplete.

Streamlit does not check the origin on custom routes, so these do; otherwise any page open in the browser could send
files. An upload has an unguessable id; names from outside never become paths unchanged.
"""

import contextlib
import errno
import os
import shutil
import time
from dataclasses import field
from pathlib import Path, PurePosixPath

from anyio import to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pipeline_lab.data_classes import dataclass
from pipeline_lab.errors import StoreError
from pipeline_lab.runs import opened_logs
from pipeline_lab.runs.run_folder import RunFolder
from pipeline_lab.runs.store import RunStore, open_store
from pipeline_lab.ui.serving import access
from pipeline_lab.units import format_bytes

URL = "/api/lab/uploads"
MB = 1_000_000
BLOCK = MB
SPARE_BYTES = 64 * MB
"""Disk space that an upload leaves free."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class UploadError(Exception):
    """An upload is refused.

    Args:
        status: HTTP status.
        sentence: What to tell the user.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass
class Upload:
    """One upload under way.

    Attributes:
        folder: Where its files go.
        names: The files' names as the browser gave them.
        received_bytes: So far, over all files.
        heard_s: When something was last received, by the monotonic clock.
    """

    folder: Path
    names: list[str] = field(default_factory=list)
    received_bytes: int = 0
    heard_s: float = field(default_factory=time.monotonic)


_uploads: dict[str, Upload] = {}
MOST_UPLOADS = 8
"""Under way at a time, for all visitors together."""
SILENT_S = 600.0
"""An upload that has received nothing for this long is dropped when the next one begins."""


def limit_bytes() -> int:
    """Return the size limit of one upload: ``PIPELINE_LAB_UPLOAD_LIMIT_MB``, or 2048 MB."""
    named = os.environ.get("PIPELINE_LAB_UPLOAD_LIMIT_MB", "")
    with contextlib.suppress(ValueError):
        return max(0, int(float(named) * MB))
    return 2048 * MB


def too_large() -> str:
    """Say how much can be uploaded, and what to do with more."""
    return (
        f"The log exceeds the upload limit of {format_bytes(limit_bytes())}; open it by its path on the app's machine, "
        "or raise PIPELINE_LAB_UPLOAD_LIMIT_MB."
    )


async def begin(request: Request) -> Response:
    """Start an upload and return its id."""
    try:
        _check_origin(request)
        await _drop_silent()
        folder = await to_thread.run_sync(opened_logs.new_arrival, open_store(locked=access.why_read_only()))
    except UploadError as error:
        return _refuse(error)
    except StoreError as error:
        return _refuse(UploadError(403 if access.why_read_only() else 507, str(error)))
    _uploads[folder.name] = Upload(folder)
    return JSONResponse({"id": folder.name})


async def _drop_silent() -> None:
    """Drop what browsers no longer send.

    Raises:
        UploadError: Too many uploads are still under way.
    """
    for upload_id in [name for name, upload in _uploads.items() if time.monotonic() - upload.heard_s > SILENT_S]:
        await _drop(upload_id)
    if len(_uploads) >= MOST_UPLOADS:
        raise UploadError(429, f"{MOST_UPLOADS} uploads are under way; wait until one of them has ended.")


async def receive(request: Request) -> Response:
    """Receive one file of an upload; on any failure the whole upload is dropped."""
    upload_id = request.path_params["upload_id"]
    try:
        _check_origin(request)
        upload = _find(upload_id)
    except UploadError as error:
        return _refuse(error)
    try:
        await _store(request, upload)
    except UploadError as error:
        await _drop(upload_id)
        return _refuse(error)
    except ClientDisconnect:
        await _drop(upload_id)
        return Response(status_code=499)
    except OSError as error:
        await _drop(upload_id)
        return _refuse(_explain(error))
    except BaseException:  # the server is stopping
        _forget(upload_id)
        raise
    return JSONResponse({"received": upload.received_bytes})


async def cancel(request: Request) -> Response:
    """Drop an upload."""
    try:
        _check_origin(request)
    except UploadError as error:
        return _refuse(error)
    await _drop(request.path_params["upload_id"])
    return JSONResponse({})


def finish(store: RunStore, upload_id: str) -> RunFolder:
    """Turn a complete upload into a run.

    Raises:
        StoreError: There is no such upload, or the store cannot be written.
    """
    upload = _uploads.pop(upload_id, None)
    if upload is None or not upload.names:
        raise StoreError("That upload no longer exists; send the files again.")
    return opened_logs.adopt(store, upload.folder, title(upload.names))


def title(names: list[str]) -> str:
    """Name a log after its only file, its only folder, or the number of its files."""
    if len(names) == 1:
        return PurePosixPath(names[0]).name
    folders = {PurePosixPath(name).parts[0] for name in names if "/" in name}
    return folders.pop() if len(folders) == 1 else f"{len(names)} files"


async def _store(request: Request, upload: Upload) -> None:
    name = request.path_params["name"]
    announced = request.headers.get("content-length", "")
    if announced.isdigit():
        _check_size(upload.received_bytes + int(announced))
        _check_room(upload.folder, int(announced))
    path = upload.folder / opened_logs.place(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = path.open("xb", buffering=0)
    except FileExistsError:
        raise UploadError(409, f"Two files are called {path.name}; upload them in one archive.") from None
    with file:
        block = bytearray()
        async for chunk in request.stream():
            upload.received_bytes += len(chunk)
            upload.heard_s = time.monotonic()
            _check_size(upload.received_bytes)
            block += chunk
            if len(block) >= BLOCK:
                await to_thread.run_sync(_write, file.fileno(), bytes(block))
                block.clear()
        await to_thread.run_sync(_write, file.fileno(), bytes(block))
    upload.names.append(name)


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _check_origin(request: Request) -> None:
    if not access.is_own_origin(request.headers):
        raise UploadError(403, "Logs can only be sent from the app's own page.")


def _check_size(size_bytes: int) -> None:
    if size_bytes > limit_bytes():
        raise UploadError(413, too_large())


def _check_room(folder: Path, size_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if size_bytes + SPARE_BYTES > free:
        raise UploadError(
            507,
            f"The log takes {format_bytes(size_bytes)}, but only {format_bytes(free)} of disk space is left; free some space, or "
            "move the run store with PIPELINE_LAB_STORE.",
        )


def _explain(error: OSError) -> UploadError:
    if error.errno in _NO_ROOM:
        return UploadError(507, "The disk is full, so nothing was saved; free some space and send the log again.")
    return UploadError(500, f"The log could not be written: {error.strerror or error}.")


def _find(upload_id: str) -> Upload:
    if upload_id not in _uploads:
        raise UploadError(404, "That upload has ended; send the files again.")
    return _uploads[upload_id]


async def _drop(upload_id: str) -> None:
    await to_thread.run_sync(_forget, upload_id)


def _forget(upload_id: str) -> None:
    upload = _uploads.pop(upload_id, None)
    if upload is not None:
        shutil.rmtree(upload.folder, ignore_errors=True)


def forget_all() -> None:
    """Delete what browsers still send or never finished: with this process go the ids under which they could."""
    for upload_id in list(_uploads):
        _forget(upload_id)


def _refuse(error: UploadError) -> Response:
    return JSONResponse({"error": str(error)}, status_code=error.status)


def discard_stale() -> None:
    """Delete what nobody kept or finished."""
    opened_logs.discard_stale(open_store(), time.time())


ROUTES = [
    Route(URL, begin, methods=["POST"]),
    Route(f"{URL}/{{upload_id}}", cancel, methods=["DELETE"]),
    Route(f"{URL}/{{upload_id}}/{{name:path}}", receive, methods=["PUT"]),
]
