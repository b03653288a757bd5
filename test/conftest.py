"""What all tests share: a ROS domain of their own, one thread for linear algebra, and the recorded data sets."""

import contextlib
import fcntl
import gc
import importlib.util
import logging
import os
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

# Before NumPy is imported: two workers with a thread pool each are slower than with one thread each.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

# Of these, those whose nodes move nothing have no deadlines of a robot.
AT_REST = ("test_identifier", "test_parameter_topic", "test_plates", "test_recorder", "test_replay")
ROOT = Path(__file__).resolve().parent.parent


def is_node_test(item: pytest.Item) -> bool:
    return (ROOT / "test" / "nodes") in item.path.parents


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
    from inertid_ros.nodes.demo.domain import claim_domain

    claim = contextlib.ExitStack()
    config.add_cleanup(claim.close)
    os.environ["ROS_DOMAIN_ID"] = str(claim.enter_context(claim_domain()))
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    for variable in ("ROS_DISCOVERY_SERVER", "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "ROS_NAMESPACE"):
        os.environ.pop(variable, None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tests of nodes that move a robot have the machine to themselves: their deadlines are those of the robot.

    The workers of pytest-xdist share a lock that these tests take alone and all others together. It is taken outside
    of the test's own time limit.
    """
    path = turns(item.config)
    if path is None:
        return (yield)
    with path.open("w") as lock:
        alone = is_node_test(item) and item.path.stem not in AT_REST
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        with uncollected() if alone else contextlib.nullcontext():
            return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A node test that fails is run again, twice at most, and told as rerun: shared machines hold up whole processes
    for longer than a robot may be silent, which a second run tells from a fault of ours."""
    for item in items:
        if is_node_test(item):
            item.add_marker(pytest.mark.flaky(reruns=2))


@contextlib.contextmanager
def uncollected() -> Generator[None]:
    """No garbage collection meanwhile: in a process that has run a thousand tests one takes longer than the fake robot,
    which is a thread of it, may be silent."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def turns(config: pytest.Config) -> Path | None:
    """The lock that the workers of one run share; None where there are none."""
    run = getattr(config, "workerinput", {}).get("testrunuid")
    return Path(tempfile.gettempdir()) / f"inertid_ros_turns_{run}" if run else None


def pytest_unconfigure(config: pytest.Config) -> None:
    path = turns(config)
    if path is not None:
        path.unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def logger_of_the_library() -> None:
    """As nobody has set it up: commands that run in the test's process do so for themselves."""
    logger = logging.getLogger("inertid_ros")
    logger.setLevel(logging.NOTSET)
    logger.propagate, logger.handlers = True, []


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
