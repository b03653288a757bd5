"""Adaptation node with the MuJoCo simulator over ROS 2: time of a control step, jitter, and payloads in motion.

    PYTHONPATH=benchmarks:test python benchmarks/adaptation_node.py

Simulator, node and this client are separate processes on one machine. Jitter is measured on the efforts that this
client receives.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from studies.payload_study import CalibratedPanda
from studies.simulated_panda import MODEL
from support.nodes.adapted_arm import JOINTS, START, AdaptedArm, adapted_arm_in, swayed
from tables import machine, publish, table

from inertid_ros.adaptive_control.controlled_arm import ControlledArm, adaptive_controller, first_estimate
from inertid_ros.config.excitation import EffortControlOptions, LimitOptions, MonitorOptions
from inertid_ros.core.arrays import Array
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.nodes.tools.processes import claim_domain
from inertid_ros.report.results import Result
from inertid_ros.simulation.simulated_robot import SimulatedRobot

PERIOD_S, ROUNDS, MASS = 4.0, 8, 2.0  # period of the motion [s], rounds, payload [kg]
GRIP_S = 3.3 * PERIOD_S
ROBOT = {f"robot.locked_joints.{name}": value for name, value in MODEL.locked_joints.items()}
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Run:
    """Largest error of a joint over time [s, rad], steps between efforts [s], and use of the processor."""

    time: Array
    error: Array
    steps: Array
    gripped: float
    cpu: float
    log: str

    def largest(self, begin: float, end: float) -> float:
        """Largest error in a span of time [rad]."""
        return float(self.error[(self.time >= begin) & (self.time < end)].max())

    @property
    def former(self) -> float:
        """Largest error before the payload, without the first round [rad]."""
        return self.largest(PERIOD_S, self.gripped)

    @property
    def recovered(self) -> float:
        """Time from the grip until the error stays below twice its former largest value [s]; NaN if it never does."""
        late = self.time[(self.time > self.gripped) & (self.error > 2 * self.former)]
        if not len(late):
            return 0.0
        return float(late[-1] - self.gripped) if late[-1] < self.time[-1] - PERIOD_S else np.nan


def cpu_seconds(process: int) -> float:
    """Processor time of all threads of a process [s]."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def run(parameters: Mapping[str, Any], seed: int) -> Run:
    """Let the arm sway, and grip a payload after some rounds."""
    simulator = {**ROBOT, "simulation.seed": seed}
    with (
        tempfile.TemporaryDirectory() as folder,
        adapted_arm_in(Path(folder), {**ROBOT, **parameters}, simulator) as arm,
    ):
        arm.in_control()
        arm.spin(2.0)
        arm.states.clear()
        arm.efforts.clear()
        begun, used = time.monotonic(), cpu_seconds(arm.node.process.pid)
        start = arm.sway(PERIOD_S, ROUNDS)
        arm.spin(0.3 + GRIP_S)
        gripped = arm.ros.node.get_clock().now().nanoseconds * 1e-9 - start
        arm.grip(MASS)
        arm.spin((ROUNDS * PERIOD_S) - GRIP_S + 0.5)
        cpu = (cpu_seconds(arm.node.process.pid) - used) / (time.monotonic() - begun)
        return Run(*errors(arm, start), np.diff([received for _, received in arm.efforts]), gripped, cpu, arm.log())


def errors(arm: AdaptedArm, start: float) -> tuple[Array, Array]:
    """Time since the start of the reference [s], and largest joint error [rad], during the motion."""
    stamps = np.array([state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec for state, _ in arm.states]) - start
    columns = [arm.states[-1][0].name.index(joint) for joint in JOINTS]
    position = np.array([state.position for state, _ in arm.states])[:, columns]
    moving = (stamps >= 0) & (stamps <= ROUNDS * PERIOD_S)
    asked = swayed(stamps[moving], PERIOD_S)[0]
    return stamps[moving], np.abs(position[moving] - asked).max(axis=1)


def step_times(result: Result, seconds: float = 20.0) -> Array:
    """Processor time per tick of an adaptive arm with seven joints, including the update by joint states [s]."""
    options = EffortControlOptions()
    estimate = first_estimate(result.model, str(result.directory))
    robot = SimulatedRobot(result.model, start=START)
    robot.step(200)
    begin = robot.state()
    arm = ControlledArm(
        adaptive_controller(estimate, options), estimate.model, LimitOptions(), options, MonitorOptions(),
        begin,
    )  # fmt: skip
    points = np.linspace(0.0, seconds, int(5 * seconds) + 1)[1:]
    spent = []
    for tick in range(int(seconds * options.rate_hz)):
        now, sample = robot.time, robot.state()
        if tick == 1:
            motion = [np.array(each) for each in swayed(points, PERIOD_S)]
            arm.follow(PiecewiseQuintic(now + points, *motion), now)
        before = time.process_time()
        arm.update(1000.0 + sample.time, 1000.0 + now, now, sample.position, sample.velocity, sample.effort)
        effort = arm.tick(now)
        spent.append(time.process_time() - before)
        assert effort is not None, arm.fault
        robot.command_effort(effort)
        robot.step(2)
    return np.array(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of drives, noise and calibration")
    seed = parser.parse_args().seed
    rows, jitter, logs = [], [], []
    with tempfile.TemporaryDirectory() as folder, claim_domain() as domain:
        os.environ["ROS_DOMAIN_ID"], os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = str(domain), "LOCALHOST"
        result = CalibratedPanda(seed, f"{folder}/result").result
        spent = 1e3 * step_times(result)
        calibrated = {"result": str(result.directory)}
        runs: dict[str, dict[str, Any]] = {
            "calibrated, the last link adapts": calibrated,
            "calibrated, speed 30": {**calibrated, "control.speed": 30.0},
            "calibrated, no adaptation": {**calibrated, "control.law": "none"},
            "description without friction": {},
        }
        for name, parameters in runs.items():
            found = run(parameters, seed)
            after = found.largest(found.gripped, found.gripped + 1.0)
            last = found.largest((ROUNDS - 1) * PERIOD_S, np.inf)
            time_s = f"{found.recovered:.1f}" if np.isfinite(found.recovered) else "not within the run"
            rows.append([name, *(f"{1e3 * value:.2f}" for value in (found.former, after, last)), time_s])
            steps = 1e3 * np.sort(found.steps)
            jitter.append([name, f"{1e3 / steps.mean():.0f}",
                           *(f"{np.percentile(steps, share):.2f}" for share in (1, 50, 99, 99.9, 100)),
                           f"{100 * found.cpu:.0f} %"])  # fmt: skip
            told = [line.partition("stopped: ")[2] for line in found.log.splitlines()]
            logs += [f"{name}: {line}" for line in told if line]
    publish("adaptation-node", _text(spent, rows, jitter, logs))


def _text(spent: Array, rows: list[list[str]], jitter: list[list[str]], logs: list[str]) -> str:
    return f"""## Adaptation node

A Panda in MuJoCo with friction and sensor noise, calibrated by this package from one motion of 20 s (a second motion is
held out), under torque control at 500 Hz over ROS 2; joint states at 500 Hz. All joints sway by up to 0.4 rad with a
period of {PERIOD_S:g} s; after {GRIP_S:.1f} s the moving hand grips a box of {MASS:g} kg.

One control step (supervision, reference, torque of seven joints, adaptation of seven bodies, update by the joint state)
takes {np.median(spent):.2f} ms of processor time in the median, {np.percentile(spent, 99.9):.2f} ms at the 99.9th
percentile.

Largest joint error [mrad] in the two rounds before the grip, in the first second after the grip, and in the last round;
time from the grip until the error stays below twice the error before the grip [s]:

{table(["first estimate", "before", "gripped", "last round", "recovered after"], rows)}

Interval between effort commands, measured in another process [ms], and share of a core that the node uses:

{table(["run", "rate [Hz]", "1 %", "median", "99 %", "99.9 %", "largest", "processor"], jitter)}

{"All runs ended without a stop." if not logs else "Stopped: " + "; ".join(logs)}

{machine()}, load {os.getloadavg()[1]:.1f} at the end"""


if __name__ == "__main__":
    main()
