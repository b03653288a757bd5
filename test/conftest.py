"""What all tests share: a ROS domain of their own, one thread for linear algebra, and the recorded data sets."""

import contextlib
import importlib.util
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.latencies import all_latencies, latencies, print_latencies  # noqa: F401 - the first two are fixtures
from support.paths import ROOT
from support.quick_outputs import files_not_synced, pages_without_plots  # noqa: F401 - fixtures for all tests
from support.written_files import written_files_have_their_schema  # noqa: F401 - a fixture for all tests

# Before NumPy is imported: two workers with a thread pool each are slower than with one thread each.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")


def refuse_incomplete_installation() -> None:
    """Name a source file that the installed package lacks, instead of failing at its import in a hundred tests."""
    found = importlib.util.find_spec("inertid_ros")
    if found is None or found.origin is None:
        raise pytest.UsageError("inertid_ros is not importable: run 'make build' and source .build/jazzy/env.sh")
    installed, source = Path(found.origin).parent, ROOT / "inertid_ros"
    for file in sorted(source.rglob("*.py")):
        if not (installed / file.relative_to(source)).exists():
            raise pytest.UsageError(f"{installed} lacks {file.relative_to(source)}: run 'make build'")


def pytest_configure(config: pytest.Config) -> None:
    """Keep every test process, and what it starts, to itself: no robot nearby may see these topics."""
    refuse_incomplete_installation()
    from inertid_ros.nodes.tools.processes import claim_domain

    claim = contextlib.ExitStack()
    config.add_cleanup(claim.close)
    os.environ["ROS_DOMAIN_ID"] = str(claim.enter_context(claim_domain()))
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    for variable in ("ROS_DISCOVERY_SERVER", "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "ROS_NAMESPACE"):
        os.environ.pop(variable, None)


# What a module of test/nodes imports if its tests start nodes, or processes that have one.
_NODE_STARTERS = {
    "NodeProcess", "RosClient", "adapted_arm_in", "excitation_in", "local_nodes", "rclpy", "ros_client_in",
    "subprocess",
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order and groups for several workers (``--dist loadgroup``).

    Tests that move a robot in real time come first, file by file, then those of other running nodes, of which no two
    run at once but for one of FLOWS and one of single nodes, then all others, file by file.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:  # tests of several files that share what is slow to make
            item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=lambda item: 0 if item.get_closest_marker("realtime") else 1 if _group(item) == "nodes" else 2)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse to run tests of nodes side by side because pytest-xdist has lost their groups."""
    if getattr(session.config.option, "loadgroup", False) and any("@" not in item.nodeid for item in session.items):
        raise pytest.UsageError("pytest-xdist does not group tests with this pytest: see requirements/dev.txt")


def _group(item: pytest.Item) -> str:
    path = item.path.relative_to(ROOT / "test")
    starts_nodes = path.parts[0] == "nodes" and not _NODE_STARTERS.isdisjoint(vars(item.getparent(pytest.Module).obj))
    return "nodes" if starts_nodes and not item.get_closest_marker("realtime") else str(path)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What nobody waits for leaves the processor to the nodes of the worker beside; a process does so once for all."""
    watched = item.get_closest_marker("realtime") or _group(item) == "nodes"
    if not watched and "PYTEST_XDIST_WORKER" in os.environ:
        os.setpriority(os.PRIO_PROCESS, 0, 19)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    print_latencies(terminalreporter)


@pytest.fixture(autouse=True)
def logger_of_the_library() -> None:
    """As nobody has set it up: commands that run in the test's process do so for themselves."""
    logger = logging.getLogger("inertid_ros")
    logger.setLevel(logging.NOTSET)
    logger.propagate, logger.handlers = True, []


@pytest.fixture(scope="session", autouse=True)
def planning_in_this_process() -> Iterator[None]:
    """As on one core, which gives the same motion: a process for each descent takes longer to start than to plan."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _process: {0})
        yield


@pytest.fixture(scope="session")
def datasets() -> Path:
    """Folder of the recorded data sets; skips where they are absent."""
    folder = Path(os.environ.get("INERTID_DATASETS", ROOT.parent / "shared" / "datasets"))
    if not folder.is_dir():
        pytest.skip(f"no recorded data sets in {folder}: set INERTID_DATASETS to their folder")
    return folder


@pytest.fixture(scope="session")
def robots() -> Path:
    """Folder of the example robots' URDFs; skips where example-robot-data is not installed."""
    for site in map(Path, sys.path):
        folder = site / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
        if folder.is_dir():
            return folder
    pytest.skip("example-robot-data is not installed: pip install example-robot-data")
