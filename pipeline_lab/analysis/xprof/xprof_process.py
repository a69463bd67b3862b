"""Ask XProf about trace files, inside a process that may be killed: ``python -m pipeline_lab.analysis.xprof.xprof_process``.

XProf holds a trace many times over in memory, can take minutes, and has crashed on some; `xprof.ask_xprof` starts this
process, watches it, and reads the document that it leaves. Nothing else of the package is imported here.
"""

import importlib
import importlib.metadata
import json
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

TOOLS = ("input_pipeline_analyzer", "overview_page")


def main(arguments: list[str]) -> None:
    """Write XProf's answers to a file.

    Args:
        arguments: File to write, seconds after which to die, and the trace files.
    """
    output, seconds, *files = arguments
    signal.alarm(int(float(seconds)) + 10)  # outlives no parent that was killed while it watched
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    begin = time.perf_counter()
    converter = importlib.import_module("xprof.convert.raw_to_tool_data")
    document: dict[str, Any] = {
        "version": importlib.metadata.version("xprof"),
        "import_seconds": time.perf_counter() - begin,
        "offers": _attempt(lambda: list(converter.xspace_to_tool_names(files)))["answer"] or [],
    }
    for tool in TOOLS:
        # `use_saved_result` would take an answer from a cache file beside the trace, whatever the trace is now.
        document[tool] = _attempt(
            lambda name=tool: _decode(converter.xspace_to_tool_data(files, name, {"use_saved_result": False})[0])
        )
    document["peak_rss_bytes"] = _peak_rss_bytes()
    target = Path(output)
    partial = target.with_suffix(".partial")
    partial.write_text(json.dumps(document))
    partial.rename(target)


def _attempt(ask: Any) -> dict[str, Any]:
    begin = time.perf_counter()
    answer, error = None, None
    try:
        answer = ask()
    except Exception as problem:  # whatever XProf raises is an answer too
        error = f"{type(problem).__name__}: {problem}"
    return {"answer": answer, "error": error, "seconds": time.perf_counter() - begin}


def _decode(answer: bytes | str | None) -> Any:
    return None if answer is None else json.loads(answer)


def _peak_rss_bytes() -> int:
    """Return the largest resident size of this process; what it was before ``exec`` does not count."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = (line.split() for line in status.read_text().splitlines())
        return next(int(words[1]) * 1024 for words in lines if words and words[0] == "VmHWM:")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    main(sys.argv[1:])
