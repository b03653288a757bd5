"""Diagnostics: what the running nodes publish is what docs/reference/diagnostics.md says."""

import re
import time
from collections.abc import Iterator

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus  # noqa: E402
from support.nodes.local_nodes import CLASSES, local_nodes, spinning  # noqa: E402
from support.nodes.processes import NodeProcess  # noqa: E402
from support.paths import ROOT  # noqa: E402

PAGE = (ROOT / "docs" / "reference" / "diagnostics.md").read_text(encoding="utf-8")
LEVELS = {
    "OK": DiagnosticStatus.OK,
    "WARN": DiagnosticStatus.WARN,
    "ERROR": DiagnosticStatus.ERROR,
    "STALE": DiagnosticStatus.STALE,
}
ELSEWHERE = "elsewhere"
WRENCH = {"wrench_names": ["hand"], "wrenches": {"hand": {"topic": "hand/wrench"}}}


def table(heading: str) -> dict[str, list[str]]:
    """First cell to the others, of the table below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {row[0].strip(" `"): [cell.strip() for cell in row[1:]] for row in rows}


@pytest.fixture(scope="module")
def statuses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[DiagnosticStatus]]:
    """Of all nodes; nothing moves."""
    folder = tmp_path_factory.mktemp("diagnostics")
    received: list[DiagnosticStatus] = []
    flow = NodeProcess("calibrate", folder, {"wait_s": 60.0})
    lonely = NodeProcess("measure_payload", folder, {"wait_s": 60.0}, namespace=f"/{ELSEWHERE}")  # waits for its nodes
    try:
        with local_nodes(folder, {name: WRENCH if name == "recorder" else {} for name in CLASSES}) as nodes:
            listener = rclpy.create_node("listener")
            nodes["listener"] = listener
            listener.create_subscription(DiagnosticArray, "/diagnostics", lambda m: received.extend(m.status), 100)
            with spinning(nodes) as executor:
                nodes["excitation"].trigger_configure()
                start = time.monotonic()
                wanted, settled = {*CLASSES, "calibrate", f"{ELSEWHERE}/measure_payload"}, start + 3.0
                while {status.name.split(":")[0] for status in received} != wanted or time.monotonic() < settled:
                    executor.spin_once(timeout_sec=0.1)
                    assert time.monotonic() < start + 60.0, flow.log() + lonely.log()
            yield received
    finally:
        flow.kill()
        lonely.kill()


def documented(name: str) -> str:
    return re.sub(r"topic .*", "topic <topic>", name.removeprefix(f"{ELSEWHERE}/"))


def test_names_and_keys_are_those_of_the_page(statuses: list[DiagnosticStatus]) -> None:
    published = {documented(status.name): [value.key for value in status.values] for status in statuses}
    assert published == {name: re.findall(r"`([^`]+)`", cells[0]) for name, cells in table("Keys").items()}
    assert {status.name for status in statuses if "topic" in status.name} == {
        "recorder: topic /joint_states", "recorder: topic /hand/wrench",
    }  # fmt: skip


def test_levels_are_among_those_of_the_page(statuses: list[DiagnosticStatus]) -> None:
    levels = table("Levels")
    assert list(levels) == list(table("Keys"))
    possible = {
        name: {LEVELS[level] for level, cell in zip(LEVELS, cells, strict=True) if cell != "–"}
        for name, cells in levels.items()
    }
    for status in statuses:
        assert status.level in possible[documented(status.name)], f"{status.name}: {status.message}"


def test_statuses_of_a_robot_that_nothing_is_done_with(statuses: list[DiagnosticStatus]) -> None:
    last = {status.name: status for status in statuses}
    values = {name: {value.key: value.value for value in status.values} for name, status in last.items()}
    states = values["excitation: joint states"]
    assert last["excitation: joint states"].hardware_id == "two_links"
    assert float(states["Actual frequency (Hz)"]) > 20.0 and int(states["Messages"]) > 20
    assert abs(float(states["Delay (s)"])) < 1.0
    assert values["excitation: controller"]["Topic or action"] == "/joint_trajectory"
    assert last["excitation: controller"].message == "commands arrive"
    silent = last["recorder: topic /hand/wrench"]
    assert silent.level == DiagnosticStatus.STALE and "/hand/wrench has no publisher" in silent.message
    assert "several nodes publish /joint_states" in last["excitation: joint states"].message  # the replay too
    assert values["recorder: topic /joint_states"]["Publishers"] == "2" and last["recorder: disk"].hardware_id == "none"
    assert float(values["recorder: disk"]["Free space (MiB)"]) > 0
    assert values["identifier: identification"]["State"] == "ready"
    assert values["identifier: result"]["Age (s)"] == "" and last["identifier: result"].level == DiagnosticStatus.OK
    assert float(values["simulator: robot"]["Simulated time (s)"]) > 0
    assert last["replay: playback"].message in ("waiting for subscribers", "playing", "played")
    assert all(status.message for status in statuses)
