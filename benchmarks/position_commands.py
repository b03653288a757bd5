"""Torque from position commands: accuracy against measured torque, for a leg and an arm that follow delayed commands.

    PYTHONPATH=benchmarks:test python benchmarks/position_commands.py --draws 10

Drives in MuJoCo command ``kp (q_cmd - q) + kd (v_cmd - v)`` at every timestep, with commands that arrive 20 ms after
their stamps. Both fits predict the measured torque of a held-out motion.
"""

import argparse
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from support.recordings.synthetic import Motion
from tables import machine, publish, table

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.calibration.dataset import Dataset
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.robot import LoadOptions, RobotOptions
from inertid_ros.config.simulation import SimulationOptions
from inertid_ros.data.recording import Recording
from inertid_ros.robot.body_changes import load_bodies, perturb, write_urdf
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import example_urdf
from inertid_ros.simulation.simulated_robot import SimulatedRobot

DELAY_S, SECONDS, SETTLING_S, STEPS_PER_SAMPLE = 0.02, 20.0, 1.0, 5
BASE_HZ, HARMONICS = 0.1, 8
SOFT = 0.5  # factor on the gains of the second motion
UNKNOWN = 0.3  # largest error of unknown gains
KINDS = ("commands, one gain, delay estimated", "commands, two gains, delay estimated", "commands, delay known",
    "commands, two gains, unknown", "commands, two gains, unknown, and a load")


@dataclass(frozen=True)
class Robot:
    """Joints that move, their gains and the middle of their motion; all other joints are locked at zero."""

    name: str
    urdf: str
    kp: dict[str, float]
    kd: dict[str, float]
    middle: tuple[float, ...]
    amplitude: float
    load: LoadOptions

    def options(self, **further: Any) -> RobotOptions:
        path = example_urdf(self.urdf)
        others = [joint for joint in load_model(path).joint_names if joint not in self.kp]
        return RobotOptions(locked_joints=dict.fromkeys(others, 0.0), **further)


ROBOTS = (
    Robot("leg of a Go2", "go2_description/urdf/go2.urdf",
        {"FL_hip_joint": 40.0, "FL_thigh_joint": 40.0, "FL_calf_joint": 40.0},
        {"FL_hip_joint": 1.0, "FL_thigh_joint": 1.0, "FL_calf_joint": 1.0}, (0.0, 0.8, -1.6), 0.5,
        LoadOptions("FL_calf", 1.0, ("loaded_*",), com=(0.0, 0.0, -0.15))),
    Robot("Z1", "z1_description/urdf/z1.urdf",
        {f"joint{k}": kp for k, kp in enumerate((512.0, 768.0, 768.0, 512.0, 384.0, 256.0), start=1)},
        {f"joint{k}": 25.6 for k in range(1, 7)}, (0.0, 1.2, -1.2, 0.0, 0.0, 0.0), 0.5,
        LoadOptions("link06", 1.0, ("loaded_*",), com=(0.1, 0.0, 0.03))),
)  # fmt: skip


def recorded(
        robot: Robot, truth: RobotModel, seed: int, index: int, factor: float = 1.0, loaded: bool = False) -> Recording:
    """Recording of a random motion, with measured torque and commands, and a factor on the gains."""
    rng, joints = np.random.default_rng(100 * seed + index), truth.joints
    order = np.arange(1, HARMONICS + 1)[:, None]
    amplitude = robot.amplitude * rng.uniform(0.3, 1.0, (HARMONICS, joints)) / order
    motion = Motion(BASE_HZ * order * np.ones(joints), amplitude, rng.uniform(0, 2 * np.pi, (HARMONICS, joints)))
    drives = SimulatedRobot(truth, SimulationOptions(seed=seed)).drives
    simulated = SimulatedRobot(truth, SimulationOptions(seed=1000 * seed + index), drives=drives)
    if loaded:
        bodies = truth.body_prior + load_bodies(truth, {"load": robot.load}, "loaded_1")
        simulated.become(truth.with_prior_bodies(bodies))
    step, order_of = simulated.options.timestep_s, [list(robot.kp).index(name) for name in truth.joint_names]
    kp, kd = (factor * np.array(list(gains.values()))[order_of] for gains in (robot.kp, robot.kd))
    time = step * np.arange(round((SECONDS + SETTLING_S) / step), dtype=np.float64)
    middle = np.array(robot.middle)[order_of]
    q, v, _ = motion.sample(time)
    q, late = q + middle, round(DELAY_S / step)
    simulated.reset(q[0])
    states, rows = [], []
    for row in range(len(time)):
        state, command = simulated.state(), max(row - late, 0)
        if time[row] >= SETTLING_S and row % STEPS_PER_SAMPLE == 0:
            states.append(state)
            rows.append(row)
        simulated.command_effort(kp * (q[command] - state.position) + kd * (v[command] - state.velocity))
        simulated.step()
    position, velocity, effort = (
        np.array([getattr(state, key) for state in states]) for key in ("position", "velocity", "effort"))
    return Recording(truth.joint_names, time[rows], position, effort, velocity, command_position=q[rows],
        command_velocity=v[rows], name=f"{'loaded_' if loaded else ''}gains_{factor}_{index}")


def errors_of(robot: Robot, seed: int) -> NDArray[np.float64]:
    """Relative held-out errors ``(6,)`` with measured torque and of :data:`KINDS`, then errors of the delays [s]."""
    truth = load_model(example_urdf(robot.urdf), robot.options())
    urdf = write_urdf(truth, perturb(truth, np.random.default_rng(seed)))
    stiff, held_out, second = (recorded(robot, truth, seed, index) for index in range(3))
    soft = recorded(robot, truth, seed, 2, SOFT)
    loaded = [recorded(robot, truth, seed, 3 + index, factor, True) for index, factor in enumerate((1.0, SOFT))]
    measured = Configuration(robot.options())
    prepared = Dataset.screened(load_model(urdf, measured.robot), measured, [held_out])
    samples = prepared.prepared(prepared.cutoff()).samples()[0]
    gains = {"effort": "position_command", "command_kp": robot.kp, "command_kd": robot.kd}
    two, rng = {"command_gain_factors": {f"*gains_{SOFT}_*": SOFT}}, np.random.default_rng(seed)
    wrong = {"effort": "position_command"} | {
        key: {joint: gain * rng.uniform(1 - UNKNOWN, 1 + UNKNOWN) for joint, gain in getattr(robot, part).items()}
        for key, part in (("command_kp", "kp"), ("command_kd", "kd"))}
    errors, delays = [], []
    for train, further in (([stiff, second], {}), ([stiff, second], gains), ([stiff, soft], gains | two),
            ([stiff, second], gains | {"command_delay_s": DELAY_S}), ([stiff, soft], wrong | two),
            ([stiff, soft, *loaded], wrong | two | {"loads": {"load": robot.load}})):
        identify = IdentifyOptions(drive_gains=further.items() >= wrong.items())
        configuration, given = Configuration(robot.options(**further), identify=identify), [*train, held_out]
        if further:
            given = [replace(one, effort=np.full(one.position.shape, np.nan)) for one in given]
        model = load_model(urdf, configuration.robot)
        estimate = calibrate(model, given[:-1], given[-1:], configuration).estimate
        error = (estimate.equations.predict(estimate.parameters, samples) - samples.tau)[samples.mask]
        errors.append(float(np.linalg.norm(error) / np.linalg.norm(samples.tau[samples.mask])))
        delays.append(-estimate.delay - DELAY_S)
    return np.array([*errors, *delays[1:]])


def main() -> None:
    """Publish the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    draws = parser.parse_args().draws
    rows = []
    for robot in ROBOTS:
        measured, *others = np.transpose([errors_of(robot, seed) for seed in range(draws)])
        rows.append([robot.name, "measured torque", f"{100 * np.median(measured):.2f}", "1.00", "1.00", ""])
        for kind, errors, delay in zip(KINDS, others[: len(KINDS)], others[len(KINDS) :], strict=True):
            ratio, found = errors / measured, "" if "delay known" in kind else f"{1e3 * np.abs(delay).max():.2f}"
            rows.append([robot.name, kind, f"{100 * np.median(errors):.2f}", f"{np.median(ratio):.2f}",
                f"{ratio.max():.2f}", found])
    header = ("robot", "effort", "error, median [%]", "ratio, median", "largest", "largest error of the delay [ms]")
    publish("position-commands", f"""{table(header, rows)}

Draws of drives, noise, motions and errors of the URDF: {draws}; two motions of {SECONDS:.0f} s, commands
{1e3 * DELAY_S:.0f} ms late. *Two gains*: the second motion has half the gains. *Unknown*: both gains of every joint are
off by up to {100 * UNKNOWN:.0f} %; *a load*: two further motions with a known load of 1 kg. *Error*: torque on a
held-out motion against the measured torque. Measured on {machine()}.""")


if __name__ == "__main__":
    main()
