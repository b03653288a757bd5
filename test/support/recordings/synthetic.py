"""Synthetic recordings whose true motion is known."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel


@dataclass(frozen=True)
class Motion:
    """A sum of sinusoids per joint, exact at any time."""

    frequency: np.ndarray
    amplitude: np.ndarray
    phase: np.ndarray

    def sample(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Position, velocity, acceleration, ``(N, n)`` each."""
        angle = 2 * np.pi * self.frequency * time[:, None, None] + self.phase
        rate = 2 * np.pi * self.frequency
        q = (self.amplitude * np.sin(angle)).sum(axis=1)
        v = (self.amplitude * rate * np.cos(angle)).sum(axis=1)
        a = -(self.amplitude * rate**2 * np.sin(angle)).sum(axis=1)
        return q, v, a


def random_motion(rng: np.random.Generator, joints: int, base_hz: float = 0.1, harmonics: int = 5) -> Motion:
    """Fourier motion of about one radian."""
    order = np.arange(1, harmonics + 1)[:, None]
    amplitude = rng.uniform(0.3, 1.0, (harmonics, joints)) / order
    phase = rng.uniform(0, 2 * np.pi, (harmonics, joints))
    return Motion(base_hz * order * np.ones(joints), amplitude, phase)


def record(
    model: RobotModel,
    motion: Motion,
    time: np.ndarray,
    noise: float = 0.0,
    rng: np.random.Generator | None = None,
    name: str = "synthetic",
) -> Recording:
    """Recording of the rigid body torques along a motion, with white noise on the positions."""
    q, v, a = motion.sample(time)
    tau = inverse_dynamics(model, q, v, a)
    noisy = q if rng is None else q + noise * rng.normal(size=q.shape)
    return Recording(model.joint_names, time, noisy, tau, velocity=v, name=name)


def inverse_dynamics(model: RobotModel, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """``(N, n)`` joint torques of the model as given."""
    import pinocchio as pin

    data = model.pinocchio.createData()
    return np.array([pin.rnea(model.pinocchio, data, *state) for state in zip(q, v, a, strict=True)])


def jittered_time(rng: np.random.Generator, rate_hz: float, duration: float, jitter: float) -> np.ndarray:
    """Stamps that scatter by a share of the period, as those of a loop without hard deadlines."""
    time = np.arange(0.0, duration, 1 / rate_hz)
    return np.sort(time + jitter / rate_hz * rng.uniform(-0.5, 0.5, len(time)))
