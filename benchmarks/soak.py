"""Soak: one calibration after the other with the same nodes; check that handles, threads, memory and rates stay flat.

    PYTHONPATH=benchmarks:test python benchmarks/soak.py --minutes 60

Excitation node, recorder and identifier keep running with a robot of two joints; the flow of `calibrate` is started
repeatedly. Between two flows, at rest, each node's open files, threads, children and memory are read from /proc; rates
of topics are means over a flow and its pause. The exit status is 1 if a measure still grows after the first third.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from studies.own_domain import own_domain
from studies.stages_of_calibration import errors
from support.nodes.fake_robot import FakeRobot
from support.nodes.processes import NodeProcess
from support.nodes.quick_parameters import MANY_NODES
from support.nodes.ros_client import RosClient, ros_client_in
from tables import machine, publish, table

from inertid_ros.msg import ExcitationStatus, IdentifierStatus, RecorderStatus, SampleBatch
from inertid_ros.ros.topics import BATCH, LATCHED, STATE

NODES = ("excitation", "recorder", "identifier")
KEPT = 4  # recordings of the identifier, so that its memory is full after two flows
MEASURES = ("open files", "threads", "children", "resident memory [MiB]", "CPU [%]")
FLAT = ("open files", "threads", "children")
MEMORY_MIB_H = 6.0  # smallest reported growth of memory, if it is significant
RATE_CHANGE = 0.1  # relative change of a topic's rate, first to last third
TOPICS: dict[str, tuple[Any, QoSProfile]] = {
    "joint_states": (JointState, STATE),
    "excitation/status": (ExcitationStatus, LATCHED),
    "recorder/status": (RecorderStatus, LATCHED),
    "recorder/batch": (SampleBatch, BATCH),
    "identifier/status": (IdentifierStatus, LATCHED),
    "/diagnostics": (DiagnosticArray, QoSProfile(depth=100)),
}


@dataclass(frozen=True)
class Trend:
    """A measure over the flows after the first third."""

    first: float
    last: float
    slope: float  # per hour
    deviation: float  # standard deviation of the slope

    @property
    def is_growth(self) -> bool:
        """Whether the slope is significantly above zero."""
        return self.slope > 3 * self.deviation


def trend(hours: np.ndarray, values: np.ndarray) -> Trend:
    """Least-squares line; its deviation from the residuals."""
    late = slice(len(values) // 3, None)
    t, y = hours[late] - hours[late].mean(), values[late] - values[late].mean()
    slope = float(t @ y / (t @ t))
    residual = y - slope * t
    deviation = float(np.sqrt(residual @ residual / max(len(y) - 2, 1) / (t @ t)))
    return Trend(float(values[late][0]), float(values[-1]), slope, deviation)


def resources(process: int, since: tuple[float, float]) -> tuple[dict[str, float], tuple[float, float]]:
    """Resources of a process now; the second value is for the next call, to measure CPU in between."""
    proc = Path("/proc") / str(process)
    fields = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    children = sum(len(path.read_text().split()) for path in (proc / "task").glob("*/children"))
    ticks = (proc / "stat").read_text().rpartition(")")[2].split()
    now = time.monotonic(), (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    return {
        "open files": len(list((proc / "fd").iterdir())),
        "threads": int(fields["Threads"]),
        "children": children,
        "resident memory [MiB]": int(fields["VmRSS"].split()[0]) / 1024,
        "CPU [%]": 100 * (now[1] - since[1]) / (now[0] - since[0]),
    }, now


class Soak:
    """Robot, nodes, and measurements after each flow."""

    def __init__(self, ros: RosClient, robot: FakeRobot) -> None:
        self.ros, self.robot, self.counts = ros, robot, Counter[str]()
        folder = ros.folder
        own: dict[str, dict[str, object]] = {
            "excitation": {**MANY_NODES, "require_recorder": True},
            "recorder": {"directory": str(folder / "recordings"), "min_free_mb": 1},
            "identifier": {"output_directory": "", "keep_recordings": KEPT},
        }
        self.nodes: dict[str, NodeProcess] = {name: ros.start(name, own[name]) for name in NODES}
        for topic, (type_, qos) in TOPICS.items():
            ros.node.create_subscription(type_, topic, lambda _data, topic=topic: self.count(topic), qos, raw=True)
        self.since = {name: (time.monotonic() - 1e9, 0.0) for name in NODES}
        self.times: list[float] = []
        self.values: dict[str, list[dict[str, float]]] = {name: [] for name in NODES}
        self.rates: list[dict[str, float]] = []
        self.load: list[float] = []
        self.ended = Counter[int]()
        self.said: list[str] = []

    def count(self, topic: str) -> None:
        """Count one message."""
        self.counts[topic] += 1

    def flow(self) -> None:
        """Run one calibration and a pause, and measure all nodes."""
        begin = time.monotonic()
        self.counts.clear()
        flow = self.ros.start("calibrate", {"wait_s": 30.0, "tables": False})
        self.ros.until(lambda: flow.process.poll() is not None, "end of the flow", 180.0)
        self.ros.spin(3.0)
        self.ended[flow.process.wait()] += 1
        self.said += errors(flow.log())
        end = time.monotonic()
        self.rates.append({topic: self.counts[topic] / (end - begin) for topic in TOPICS})
        self.times.append(end / 3600)
        self.load.append(os.getloadavg()[0])
        for name, node in self.nodes.items():
            found, self.since[name] = resources(node.process.pid, self.since[name])
            self.values[name].append(found)
        self.robot.reset()


def report(soak: Soak) -> tuple[list[list[object]], list[list[object]], list[str]]:
    """Rows of nodes and of topics, and growing measures."""
    hours, problems = np.array(soak.times), []
    rows: list[list[object]] = []
    for name, values in soak.values.items():
        for measure in MEASURES:
            line = trend(hours, np.array([value[measure] for value in values]))
            rows.append([name, measure, f"{line.first:.4g}", f"{line.last:.4g}",
                         f"{line.slope:+.3g} ± {2 * line.deviation:.2g}"])  # fmt: skip
            grows = line.last > line.first if measure in FLAT else line.slope > MEMORY_MIB_H
            if measure != "CPU [%]" and line.is_growth and grows:
                problems.append(f"{name}: {measure} grows")
    rates: list[list[object]] = []
    third = max(len(soak.rates) // 3, 1)
    for topic in TOPICS:
        first, last = (np.median([rate[topic] for rate in part]) for part in (soak.rates[:third], soak.rates[-third:]))
        rates.append([topic, f"{first:.2f}", f"{last:.2f}"])
        if abs(last - first) > RATE_CHANGE * first:
            problems.append(f"{topic}: rate changes")
    return rows, rates, problems


def main() -> None:
    """Soak and publish the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=15.0, help="duration (default 15)")
    parser.add_argument("--dry", action="store_true", help="do not publish")
    options = parser.parse_args()
    with (
        own_domain(), tempfile.TemporaryDirectory() as folder, FakeRobot() as robot, ros_client_in(Path(folder)) as ros,
    ):  # fmt: skip
        soak, end = Soak(ros, robot), time.monotonic() + 60 * options.minutes
        while time.monotonic() < end or len(soak.times) < 6:
            soak.flow()
            memory = [f"{soak.values[name][-1]['resident memory [MiB]']:.1f}" for name in NODES]
            print(len(soak.times), *memory, dict(soak.ended), f"load {os.getloadavg()[0]:.1f}", flush=True)
        rows, rates, problems = report(soak)
    ended = ", ".join(f"status {status}: {count}" for status, count in sorted(soak.ended.items()))
    minutes = 60 * (soak.times[-1] - soak.times[0])
    text = f"""## Soak

`python benchmarks/soak.py --minutes {options.minutes:g}`: {len(soak.times)} calibrations one after the other
({ended}), with the same nodes, in {minutes:.0f} minutes at a load of {min(soak.load):.0f} to
{max(soak.load):.0f}. Measures of each node between two calibrations, after the first third;
slopes of a fitted line ± twice their deviation:

{table(("node", "measure", "first", "last", "per hour"), rows)}

Rates of topics [Hz], medians over the first and the last third of the flows:

{table(("topic", "first", "last"), rates)}

Growing measures: {"; ".join(problems) or "none"}. Measured on {machine()}."""
    if options.dry:
        print(text)
    else:
        publish("soak", text)
    print(*sorted(set(soak.said)), sep="\n")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
