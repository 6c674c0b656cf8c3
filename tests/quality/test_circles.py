"""No import cycles between files; imports for types only count too."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

PACKAGES = ("fencepost", "fencepost_server", "fencepost_consumer", "fencepost_model", "fencepost_conformance", "tools")


def circle(graph: grimp.ImportGraph) -> list[str]:
    """Return the files of one cycle, each importing the next; empty if there is none."""
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as found:
        return list(reversed(found.args[1]))
    return []


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def test_no_files_import_each_other_in_a_circle(graph: grimp.ImportGraph) -> None:
    assert len(graph.modules) > 500
    assert circle(graph) == []


def test_a_circle_is_found(graph: grimp.ImportGraph) -> None:
    operations, replay = "fencepost.coordinator.kernel.operations", "fencepost.coordinator.kernel.replay_context"
    graph.add_import(importer="fencepost.coordinator.kernel.state", imported=replay)
    found = circle(graph)
    assert replay in found
    assert operations not in found
