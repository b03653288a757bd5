"""The space robot of [Naveen2019]_: recordings, estimates and predictions over many noise seeds."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from support.robots.space_robot import RANGE

from inertid_ros.config.identification import ESTIMATORS, IdentifyOptions
from inertid_ros.config.recordings import PrepareOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.excitation.planning.interval_motion import IntervalMotion
from inertid_ros.identification.base_parameters.closed_form import closed_form_base_parameters
from inertid_ros.identification.identify import identify
from inertid_ros.identification.least_squares import least_squares
from inertid_ros.regressors.whole_body_equations import MomentumEquations
from inertid_ros.robot.floating_base_motion import predict_floating
from inertid_ros.robot.model import RobotModel
from inertid_ros.simulation.free_floating import RATE_NOISE, GravityGradient, float_freely, measured

RATE_HZ = 100.0
HARMONICS, FREQUENCY = 2, np.pi / 20  # Fourier motions of [Naveen2019]_ sec. 6.4


def as_measured(recording: Recording, model: RobotModel) -> Samples:
    """Samples of every row of a recording, unfiltered, as in [Naveen2019]_."""
    count, velocity, twist, pose = model.joints, recording.velocity, recording.base_twist, recording.base_pose
    assert velocity is not None and twist is not None and pose is not None
    every = np.ones((len(recording), 6), dtype=bool)
    side = np.zeros(every.shape)
    side[:, 3:] = -velocity[:, count:] @ model.wheels.axes
    rates = np.hstack([twist, velocity[:, :count]])
    position = np.hstack([pose, recording.position[:, :count]])
    return Samples(recording.time, position, rates, np.zeros_like(rates), side, every, every[:, 0], recording.name)


def plain(model: RobotModel, recording: Recording) -> Array:
    """Published estimate: unweighted least squares on all measured rows."""
    equations = MomentumEquations(model)
    return least_squares(equations, [as_measured(recording, model)], ESTIMATORS["ols"]).parameters


def filtered(model: RobotModel, recording: Recording) -> Array:
    """Least squares on low-passed rates."""
    return least_squares(MomentumEquations(model), [_prepared(model, recording)], ESTIMATORS["wls"]).parameters


def consistent(model: RobotModel, recording: Recording) -> Array:
    """Physically consistent bodies near the prior, from low-passed rates."""
    options = IdentifyOptions(equations="momentum")
    return identify(MomentumEquations(model), [_prepared(model, recording)], options).parameters


METHODS: dict[str, Callable[[RobotModel, Recording], Array]] = {
    "least squares, as measured (published)": plain,
    "least squares, filtered": filtered,
    "consistent, filtered": consistent,
}


def _prepared(model: RobotModel, recording: Recording) -> Samples:
    return prepare(recording, model, PrepareOptions(cutoff_hz=3.0), equation_type="momentum")


@dataclass(frozen=True)
class Errors:
    """Errors of one method over noise seeds.

    Attributes
    ----------
    parameters : ndarray, shape (S, 52)
        Relative errors of the base parameters ([Naveen2019]_ eqs. 38-39).
    twist, torque : ndarray, shape (S, 6) and (S, 6)
        Root mean square errors of predictions ([Naveen2019]_ eq. 42).
    """

    parameters: Array
    twist: Array
    torque: Array

    @property
    def median_run(self) -> int:
        """Index of the run with the median of all median errors."""
        medians = np.median(self.parameters, axis=1)
        return int(np.argsort(medians)[(len(medians) - 1) // 2])


class Study:
    """One robot, one motion, and predictions on other motions.

    Parameters
    ----------
    guess : RobotModel
        The robot with the prior; ``bodies`` are the true parameters.
    motion : IntervalMotion
        Motion of joints and wheels; at most ``intervals`` intervals are recorded, from the first interval.
    gradient : GravityGradient or None
        Torque of an orbit, or none.
    """

    def __init__(
        self, guess: RobotModel, bodies: Array, motion: IntervalMotion, intervals: int,
        gradient: GravityGradient | None = None,
    ) -> None:
        self.guess, self.base = guess, closed_form_base_parameters(guess)
        self.true = self.base.projection @ bodies.ravel()
        trajectory = motion.only(range(min(intervals, len(motion.directions)))).trajectory
        self._motion = float_freely(guess, bodies, trajectory, RATE_HZ, torque=gradient)
        self.fourier = fourier_motion(guess, np.random.default_rng(7))
        self.truth = predict_floating(guess, bodies, *self.fourier)

    def recording(self, seed: int) -> Recording:
        """Recording with the noise of [Naveen2019]_ sec. 6.3."""
        return measured(self.guess, self._motion, RATE_NOISE, np.random.default_rng(seed), f"seed {seed}")

    def errors(self, method: Callable[[RobotModel, Recording], Array], seeds: int) -> Errors:
        """Errors of a method over noise seeds."""
        parameters, twist, torque = [], [], []
        for seed in range(seeds):
            found = method(self.guess, self.recording(seed))
            parameters.append(np.abs(self.base.projection @ found / self.true - 1))
            predicted = predict_floating(self.guess, self.guess.layout.bodies(found), *self.fourier)
            twist.append(_rms(predicted.twist - self.truth.twist))
            torque.append(_rms(predicted.torque - self.truth.torque))
        return Errors(np.array(parameters), np.array(twist), np.array(torque))


def fourier_motion(model: RobotModel, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Two random harmonics over 40 s, velocity peaks of the excitation; wheels rest ([Naveen2019]_ eqs. 40-41)."""
    time = np.linspace(0, 2 * np.pi / FREQUENCY, 801)
    n, w = model.joints, len(model.wheels.names)
    sine, cosine = rng.normal(size=(2, HARMONICS, n))
    q, v, a = np.zeros((3, len(time), n))
    for harmonic in range(HARMONICS):
        k = (harmonic + 1) * FREQUENCY
        s, c = np.sin(k * time)[:, None], np.cos(k * time)[:, None]
        q += sine[harmonic] * s + cosine[harmonic] * c
        v += k * (sine[harmonic] * c - cosine[harmonic] * s)
        a += -(k**2) * (sine[harmonic] * s + cosine[harmonic] * c)
    size = 2 * RANGE / np.abs(v).max(axis=0)
    still = np.zeros((len(time), w))
    return tuple(np.hstack([size * channel, still]) for channel in (q, v, a))


def _rms(error: Array) -> Array:
    return np.sqrt(np.mean(error**2, axis=0))


