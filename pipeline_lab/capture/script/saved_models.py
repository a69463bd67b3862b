"""Keeps the clocks of graph loops out of models that a script saves; see :mod:`pipeline_lab.capture.script.graph_loops`."""

import contextlib
import re
from collections.abc import Callable
from typing import Any

from tensorflow.python.framework.meta_graph import stripped_op_list_for_graph

SCOPE = "clocks_of_pipeline_lab"
"""The name scope of all that is put into graphs: nothing of the script's uses a value from there."""
_OURS = re.compile(rf"(^\^?|/){SCOPE}(_\d+)?/")


def keep_clocks_out(original: Callable[..., Any]) -> Callable[..., Any]:
    """Let a SavedModel hold what it would without clocks; functions in memory keep theirs."""

    def build(*arguments: Any, **options: Any) -> Any:
        built = original(*arguments, **options)
        with contextlib.suppress(Exception):  # a graph like no other must not end the save
            _strip(built[0])
        return built

    return build


def _strip(model: Any) -> None:
    graph = type(model.graph_def)()
    graph.CopyFrom(model.graph_def)  # what fails on the way leaves the model whole
    removed = [_strip_nodes(graph.node), *map(_strip_function, graph.library.function)]
    if any(removed):
        operations = stripped_op_list_for_graph(graph)
        model.graph_def.CopyFrom(graph)
        model.meta_info_def.stripped_op_list.CopyFrom(operations)


def _strip_function(function: Any) -> bool:
    for key in [key for key, name in function.control_ret.items() if _OURS.search(name)]:
        del function.control_ret[key]
        function.signature.control_output.remove(key)
    return _strip_nodes(function.node_def)


def _strip_nodes(nodes: Any) -> bool:
    kept = [node for node in nodes if not _OURS.search(node.name)]
    if len(kept) == len(nodes):
        return False
    for node in kept:
        node.input[:] = [name for name in node.input if not _OURS.search(name)]
    copies = [type(node).FromString(node.SerializeToString()) for node in kept]
    del nodes[:]
    nodes.extend(copies)
    return True
