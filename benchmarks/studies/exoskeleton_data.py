"""Exoskeleton on two force plates, as in [vanDerGaag2024]_: simulated, with noise, filtered, and sampled at 50 Hz."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.config.robot import RobotOptions
from inertid_ros.config.simulation import BodySensorOptions, LeggedRobotOptions, MovementOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.bandwidth import automatic_cutoff, spectrum
from inertid_ros.data.preparation.filtering import derivatives, low_pass
from inertid_ros.robot.contacts import external_force
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import LeggedRobotDescription, legged_robot
from inertid_ros.simulation.legged_robot import LeggedRobot

RATE_HZ, SAMPLE_HZ = 500.0, 50.0
EDGE_S = 0.3  # left out at both ends, while filters settle


@dataclass(frozen=True)
class Truth:
    """Quantities of the simulation, at :data:`RATE_HZ`: ``(N, ...)``; wrenches in the plates' frames."""

    time: Array
    q: Array
    v: Array
    a: Array
    effort: Array
    wrenches: dict[str, Array]

    @property
    def sampled(self) -> slice:
        """Rows that become samples."""
        edge = round(EDGE_S * RATE_HZ)
        return slice(edge, len(self.time) - edge, round(RATE_HZ / SAMPLE_HZ))


def plate_model(robot: LeggedRobotDescription, drive_terms: tuple[str, ...] = ()) -> RobotModel:
    """Model of a legged robot with a plate under every sole."""
    return load_model(robot.urdf, RobotOptions(drive_terms=drive_terms, base="free", plates=robot.plate_options()))


def simulate(name: str, seed: int, movement: MovementOptions | None = None) -> Truth:
    """Simulate movements of a legged robot."""
    options = LeggedRobotOptions(seed=seed, movement=movement or MovementOptions())
    robot = LeggedRobot(legged_robot(name), options)
    steps = round(1 / (RATE_HZ * options.timestep_s))
    robot.move()
    rows, motion = [], []
    while robot.moving:
        robot.step(steps)
        rows.append(robot.true_state())
        motion.append(robot.coordinates())
    q, v, a = (np.array(channel) for channel in zip(*motion, strict=True))
    wrenches = {plate.name: np.array([row.wrenches[plate.name] for row in rows]) for plate in robot.robot.plates}
    times, effort = np.array([row.time for row in rows]), np.array([row.effort for row in rows])
    return Truth(times, q, v, a, effort, wrenches)


def exact(model: RobotModel, truth: Truth, name: str) -> Samples:
    """Samples without noise, with exact accelerations."""
    return _samples(truth, (truth.q, truth.v, truth.a), _force(model, truth, truth.q[:, 7:]), name)


def disturbed(truth: Truth, noise: BodySensorOptions, rng: np.random.Generator) -> Truth:
    """Sensor signals of the truth: ``v`` contains the gyroscope's rates, ``a`` the base's linear acceleration.

    The orientation is exact and the unit sits at the origin of the base ([vanDerGaag2024]_ sec. VI-B). Joints have
    encoders only.
    """

    def normal(deviation: float, shape: tuple[int, ...]) -> Array:
        return deviation * rng.normal(size=shape)

    count, n = truth.effort.shape
    q, v, a = truth.q.copy(), np.zeros_like(truth.v), np.zeros_like(truth.a)
    q[:, 7:] += normal(noise.position, (count, n))
    v[:, 3:6] = truth.v[:, 3:6] + normal(noise.rate, (count, 3))
    a[:, :3] = truth.a[:, :3] + np.cross(truth.v[:, 3:6], truth.v[:, :3]) + normal(noise.acceleration, (count, 3))
    wrenches = {
        key: wrench + np.hstack([normal(noise.force, (count, 3)), normal(noise.moment, (count, 3))])
        for key, wrench in truth.wrenches.items()
    }
    effort = truth.effort + normal(noise.effort, (count, n)) * truth.effort.any(axis=0)
    return Truth(truth.time, q, v, a, effort, wrenches)


def filtered_as_published(model: RobotModel, sensors: Truth, cutoff: float) -> Samples:
    """Samples of [vanDerGaag2024]_ sec. III-E: joint positions and the gyroscope's rates pass zero-phase Butterworth
    filters of second order before and after differentiation; a cutoff of 0 turns the filters off. Forces and torques
    are not filtered."""
    period = 1 / RATE_HZ

    def smooth(values: Array) -> Array:
        return low_pass(values, period, cutoff, 2) if cutoff else values

    joints, turning = smooth(sensors.q[:, 7:]), smooth(sensors.v[:, 3:6])
    rates = smooth(np.gradient(joints, period, axis=0))
    accelerations = [sensors.a[:, :3], *(smooth(np.gradient(x, period, axis=0)) for x in (turning, rates))]
    return _assembled(model, sensors, (joints, rates, turning, np.hstack(accelerations)), f"{cutoff:g} Hz")


def filtered_as_ours(model: RobotModel, sensors: Truth) -> Samples:
    """Samples as :mod:`inertid_ros.data.preparation.prepare` makes them: one zero-phase filter on every channel,
    at the cutoff chosen from the motion, and spline derivatives."""
    period = 1 / RATE_HZ
    cutoff = automatic_cutoff(spectrum((sensors.q[:, 7:], period)), spectrum((sensors.v[:, 3:6], period)))

    def smooth(values: Array) -> Array:
        return low_pass(values, period, cutoff)

    joints, turning = smooth(sensors.q[:, 7:]), smooth(sensors.v[:, 3:6])
    rates, joint_accelerations = derivatives(joints, period, (1, 2))
    (turning_acceleration,) = derivatives(turning, period, (1,))
    a = np.hstack([smooth(sensors.a[:, :3]), turning_acceleration, joint_accelerations])
    tau = smooth(_force(model, sensors, joints))
    return _assembled(model, sensors, (joints, rates, turning, a), f"automatic, {cutoff:.1f} Hz", tau)


def _assembled(
    model: RobotModel, sensors: Truth, motion: tuple[Array, ...], name: str, tau: Array | None = None
) -> Samples:
    """Samples with a linear base velocity of zero, because forces do not depend on it."""
    joints, rates, turning, a = motion
    q, v = np.hstack([sensors.q[:, :7], joints]), np.hstack([np.zeros_like(turning), turning, rates])
    return _samples(sensors, (q, v, a), _force(model, sensors, joints) if tau is None else tau, name)


def _force(model: RobotModel, sensors: Truth, joints: Array) -> Array:
    """Generalized force of efforts and plates."""
    tau = external_force(model, np.hstack([sensors.q[:, :7], joints]), sensors.wrenches)
    tau[:, 6:] += sensors.effort
    return tau


def _samples(source: Truth, motion: tuple[Array, Array, Array], tau: Array, name: str) -> Samples:
    (q, v, a), rows = motion, source.sampled
    every = np.ones(tau[rows].shape, dtype=bool)
    return Samples(source.time[rows], q[rows], v[rows], a[rows], tau[rows], every, every[:, 0], name)
