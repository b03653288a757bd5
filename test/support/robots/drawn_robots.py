"""Robots drawn at random, published ones and chains, simulated by inverse dynamics with drives and noise as real ones.

The bodies differ from those of the URDF as perturbed ones do; friction, rotors and offsets are in proportion to the
torque that each joint needs, noise is a share of what is measured.
"""

from dataclasses import dataclass, replace

import numpy as np
from support.recordings.synthetic import Motion, random_motion
from support.robots.random_robots import random_urdf

from inertid_ros.core.arrays import Array
from inertid_ros.data.recording import Recording
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import example_urdf

PUBLISHED = (
    "panda_description/urdf/panda.urdf", "kinova_description/robots/kinova.urdf", "ur_description/urdf/ur3_robot.urdf",
    "ur_description/urdf/ur3_gripper.urdf", "ur_description/urdf/ur5_robot.urdf", "ur_description/urdf/ur10_robot.urdf",
    "xarm_description/urdf/xarm7.urdf", "z1_description/urdf/z1.urdf", "so_arm_description/urdf/so100.urdf",
    "so_arm_description/urdf/so101.urdf", "talos_data/robots/talos_left_arm.urdf",
    "tiago_description/robots/tiago_no_hand.urdf", "finger_edu_description/robots/finger_edu.urdf",
    "asr_twodof_description/urdf/TwoDofs.urdf", "double_pendulum_description/urdf/double_pendulum.urdf",
    "hextilt_description/urdf/hextilt_flying_arm_5.urdf", "bolt_description/robots/bolt.urdf",
    "solo_description/robots/solo.urdf", "quadruped_description/urdf/quadruped.urdf",
    "hyq_description/robots/hyq_no_sensors.urdf", "a1_description/urdf/a1.urdf",
    "anymal_c_simple_description/urdf/anymal.urdf",
)  # fmt: skip
"""Arms, and legged robots that hang on a stand."""
CHAIN = "chain"  # of 2 to 7 joints, with skew axes
ROBOTS = (*PUBLISHED, *(CHAIN,) * 4)
SECONDS = 20.0
_RATES_HZ = (100.0, 125.0, 200.0, 250.0)
_FRICTION_SHARE = (0.03, 0.3)  # of a joint's torque; direct drives and harmonic drives
_LEAST_SHARE = 0.05  # of the largest torque of a joint, by which wrists have friction, too
_ROTOR_SHARE, _OFFSET_SHARE = 0.1, 0.02  # of a joint's torque, along the motion
_EFFORT_NOISE, _POSITION_NOISE = (0.003, 0.03), (2e-6, 1e-4)  # of how a joint's torque varies; rad or m
_RANGE, _SPEED = (0.5, 0.95), 0.9  # of the limits that a motion uses
_USUAL_SPEED, _SLIDE_M = 2.0, 0.5  # rad/s or m/s; half a range, where the URDF has no limit


@dataclass(frozen=True)
class DrawnRobot:
    """A robot as it is, and as its sensors are.

    Attributes
    ----------
    given : RobotModel
        As the URDF has it.
    bodies : ndarray, shape (nb, 10)
    rotor_inertia, viscous, coulomb, offset, effort_noise : ndarray, shape (n,)
    with_velocity : bool
        Whether velocities are recorded.
    """

    given: RobotModel
    bodies: Array
    rotor_inertia: Array
    viscous: Array
    coulomb: Array
    offset: Array
    effort_noise: Array
    position_noise: float
    rate_hz: float
    with_velocity: bool

    def torque(self, q: Array, v: Array, a: Array) -> Array:
        """``(N, n)`` what the drives deliver."""
        friction = self.viscous * v + self.coulomb * np.sign(v)
        return rigid_torque(self.given, self.bodies, q, v, a) + self.rotor_inertia * a + friction + self.offset

    def record(self, time: Array, motion: tuple[Array, Array, Array], rng: np.random.Generator, name: str) -> Recording:
        """What sensors tell of positions, velocities and accelerations ``(N, n)``."""
        q, v, _ = motion
        effort, noise = self.torque(*motion), rng.normal(size=(3, *q.shape))
        return Recording(
            self.given.joint_names, time, q + self.position_noise * noise[0], effort + self.effort_noise * noise[1],
            velocity=v + 20 * self.position_noise * noise[2] if self.with_velocity else None, name=name,
        )  # fmt: skip

    def moved(self, rng: np.random.Generator, name: str, seconds: float = SECONDS) -> Recording:
        """A recording of a motion of its own."""
        time = np.arange(0.0, seconds, 1 / self.rate_hz)
        return self.record(time, drawn_motion(self.given, time, rng), rng, name)


def described_robot(name: str, rng: np.random.Generator) -> RobotModel:
    """A robot of :data:`ROBOTS` as its URDF has it."""
    if name == CHAIN:
        return load_model(random_urdf(rng, int(rng.integers(2, 8)), branched=False))
    return load_model(example_urdf(name))


def drawn_robot(given: RobotModel, rng: np.random.Generator) -> DrawnRobot:
    """A robot of that description with bodies, drives and sensors at random."""
    bodies, motion = perturb(given, rng), drawn_motion(given, np.arange(0.0, SECONDS, 0.1), rng)
    size = _rms(rigid_torque(given, bodies, *motion))
    size = np.maximum(size, _LEAST_SHARE * size.max())
    friction = _between(rng, _FRICTION_SHARE) * rng.uniform(0.3, 1.0, (2, given.joints)) * size
    robot = DrawnRobot(
        given, bodies, _ROTOR_SHARE * rng.uniform(size=given.joints) * size / _rms(motion[2]),
        friction[0] / _rms(motion[1]), friction[1], _OFFSET_SHARE * size * rng.normal(size=given.joints),
        np.zeros(given.joints), _between(rng, _POSITION_NOISE), float(rng.choice(_RATES_HZ)), bool(rng.random() < 0.5),
    )  # fmt: skip
    return replace(robot, effort_noise=_between(rng, _EFFORT_NOISE) * robot.torque(*motion).std(axis=0))


def drawn_motion(model: RobotModel, time: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Position, velocity and acceleration ``(N, n)`` within the limits: sines of 0.1 to 0.5 Hz."""
    low, high = joint_ranges(model)
    fastest = model.limits.velocity
    fastest = np.where(np.isfinite(fastest) & (fastest > 0), np.minimum(fastest, 10.0), _USUAL_SPEED)
    motion = random_motion(rng, model.joints)
    q, v, _ = motion.sample(np.arange(0.0, 10.0, 0.02))
    scale = np.minimum(0.5 * (high - low) * rng.uniform(*_RANGE, model.joints) / np.abs(q).max(axis=0),
                       _SPEED * fastest / np.abs(v).max(axis=0))  # fmt: skip
    q, v, a = Motion(motion.frequency, scale * motion.amplitude, motion.phase).sample(time)
    return 0.5 * (low + high) + q, v, a


def joint_ranges(model: RobotModel) -> tuple[Array, Array]:
    """Limits ``(n,)`` of positions within which motions stay; half a turn to either side without."""
    low, high = model.limits.lower, model.limits.upper
    slides = np.array([joint.prismatic for joint in model.tree if not joint.free])
    usual = np.where(slides, _SLIDE_M, np.pi)
    wide = ~(np.isfinite(low) & np.isfinite(high) & (high > low)) | (high - low > 2 * usual)
    return np.where(wide, -usual, low), np.where(wide, usual, high)


def _rms(values: Array) -> Array:
    return np.asarray(np.sqrt(np.mean(values**2, axis=0)))


def _between(rng: np.random.Generator, ends: tuple[float, float]) -> float:
    """A number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(*np.log(ends))))
