"""The exoskeleton on two force plates, measured as in D: simulated, with noise, filtered, and sampled at 50 Hz."""

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from inertid_ros.data.filters import low_pass
from inertid_ros.data.samples import Samples
from inertid_ros.regressors.external import external_force
from inertid_ros.robot.contacts import Contact, Plate
from inertid_ros.robot.model import ModelOptions, RobotModel, load_model
from inertid_ros.robot.parameters import Array
from inertid_ros.simulation.standing.catalogue import standing_robot
from inertid_ros.simulation.standing.options import BodySensorOptions, MovementOptions, StandingOptions
from inertid_ros.simulation.standing.robot import StandingRobot, StandingRobotDescription

RATE_HZ, SAMPLE_HZ = 500.0, 50.0
EDGE_S = 0.3  # left out at both ends, where filters settle


@dataclass(frozen=True)
class Truth:
    """What the simulation knows, at :data:`RATE_HZ`: ``(N, ...)``; wrenches in the plates' frames."""

    time: Array
    q: Array
    v: Array
    a: Array
    effort: Array
    wrenches: dict[str, Array]


def plate_model(robot: StandingRobotDescription, drive_terms: tuple[str, ...] = ()) -> RobotModel:
    """Model of a standing robot with a plate under every sole."""
    plates = {plate.name: plate.placement for plate in robot.plates}
    contacts = [
        Contact(
            sole.plate,
            sole.frame,
            Plate(tuple(plates[sole.plate].translation), tuple(pin.rpy.matrixToRpy(plates[sole.plate].rotation))),
        )
        for sole in robot.soles
    ]
    return load_model(robot.urdf, ModelOptions(drive_terms=drive_terms, base="free", contacts=tuple(contacts)))


def simulate(name: str, seed: int, movement: MovementOptions | None = None) -> Truth:
    """A standing robot's movements."""
    options = StandingOptions(seed=seed, movement=movement or MovementOptions())
    robot = StandingRobot(standing_robot(name), options)
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
    """Samples without noise, and of the very accelerations."""
    return _samples(model, truth, (truth.q, truth.v, truth.a), name)


def measured(
    model: RobotModel, truth: Truth, cutoff: float, noise: BodySensorOptions, rng: np.random.Generator
) -> Samples:
    """Samples as D measures them, see its III-E.

    Joint positions and the gyroscope's rates are filtered before and after they are differentiated, by zero-phase
    Butterworth filters of second order; 0 filters nothing. The orientation is exact and the unit sits at the origin of
    the base. The base's own linear velocity does not matter to any force: it is taken for zero.
    """
    period, n = 1 / RATE_HZ, truth.effort.shape[1]

    def smooth(values: Array) -> Array:
        return low_pass(values, period, cutoff, 2) if cutoff else values

    def normal(deviation: float, shape: tuple[int, ...]) -> Array:
        return deviation * rng.normal(size=shape)

    joints = smooth(truth.q[:, 7:] + normal(noise.position, truth.effort.shape))
    rates = smooth(np.gradient(joints, period, axis=0))
    turning = smooth(truth.v[:, 3:6] + normal(noise.rate, (len(joints), 3)))
    classical = truth.a[:, :3] + np.cross(truth.v[:, 3:6], truth.v[:, :3])
    linear = classical + normal(noise.acceleration, classical.shape)
    a = np.hstack([linear, smooth(np.gradient(turning, period, axis=0)), smooth(np.gradient(rates, period, axis=0))])
    v = np.hstack([np.zeros_like(linear), turning, rates])
    noisy = {
        key: wrench + np.hstack([normal(noise.force, (len(wrench), 3)), normal(noise.moment, (len(wrench), 3))])
        for key, wrench in truth.wrenches.items()
    }
    effort = truth.effort + normal(noise.effort, (len(joints), n)) * truth.effort.any(axis=0)
    given = replace(truth, effort=effort, wrenches=noisy)
    return _samples(model, given, (np.hstack([truth.q[:, :7], joints]), v, a), f"{cutoff:g} Hz")


def _samples(model: RobotModel, truth: Truth, motion: tuple[Array, Array, Array], name: str) -> Samples:
    q, v, a = motion
    tau = external_force(model, q, truth.wrenches)
    tau[:, 6:] += truth.effort
    edge, step = round(EDGE_S * RATE_HZ), round(RATE_HZ / SAMPLE_HZ)
    rows = slice(edge, len(q) - edge, step)
    every = np.ones(tau[rows].shape, dtype=bool)
    return Samples(truth.time[rows], q[rows], v[rows], a[rows], tau[rows], every, every[:, 0], name)
