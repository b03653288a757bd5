"""Friction of simulated arms, from recording to estimate: bias, coverage, and false detection of Stribeck friction.

Torques are inverse dynamics of the true robot plus friction by the sign of the true velocity; the recording has noise
on positions and torques. The given URDF is wrong, and ``prepare`` and ``identify`` have their defaults.
"""

from dataclasses import dataclass

import numpy as np
from support.recordings.synthetic import inverse_dynamics, random_motion
from support.robots.example_robots import load_with_locks
from tables import machine, publish, table

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.identify import identify
from inertid_ros.robot.body_changes import perturb, write_urdf
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import example_urdf

ARMS = {"Panda": "panda_description/urdf/panda.urdf", "UR10": "ur_description/urdf/ur10_robot.urdf"}
SEEDS, SECONDS, RATE_HZ = 100, 30.0, 500.0
POSITION_NOISE, TORQUE_NOISE = 2e-5, 0.02  # rad; share of the RMS torque
TERMS = ("viscous", "coulomb", "stribeck")


@dataclass(frozen=True)
class Friction:
    """True friction of a robot, ``(n,)`` each."""

    viscous: np.ndarray
    coulomb: np.ndarray
    stribeck: np.ndarray
    stribeck_speed: np.ndarray

    @classmethod
    def drawn(cls, rng: np.random.Generator, torque: np.ndarray, speed: np.ndarray, share: float) -> "Friction":
        """Draw friction of some per cent of the torque; Stribeck friction is about ``share`` of Coulomb friction."""
        level = np.maximum(torque, 0.02 * torque.max())
        coulomb = level * rng.uniform(0.05, 0.2, len(level))
        viscous = level / speed * rng.uniform(0.05, 0.2, len(level))
        extra = share * coulomb * rng.uniform(0.5, 1.5, len(level))
        return cls(viscous, coulomb, extra, np.exp(rng.uniform(np.log(0.05), np.log(0.3), len(level))) * speed)

    def torque(self, v: np.ndarray) -> np.ndarray:
        """Friction torque ``(N, n)`` at velocities."""
        extra = self.stribeck * np.exp(-np.abs(v) / self.stribeck_speed)
        return self.viscous * v + (self.coulomb + extra) * np.sign(v)


def recorded(model: RobotModel, seed: int, share: float) -> tuple[RobotModel, Recording, Friction]:
    """A wrong URDF of the robot, a recording of the true robot, and its friction."""
    rng = np.random.default_rng(seed)
    given = load_model(write_urdf(model, perturb(model, rng)), model.options)
    time = np.arange(0.0, SECONDS, 1 / RATE_HZ)
    q, v, a = random_motion(rng, model.joints).sample(time)
    tau = inverse_dynamics(model, q, v, a)
    rms = np.sqrt(np.mean(tau**2, axis=0))
    friction = Friction.drawn(rng, rms, np.sqrt(np.mean(v**2, axis=0)), share)
    level = TORQUE_NOISE * np.maximum(rms, 0.02 * rms.max())
    tau = tau + friction.torque(v) + level * rng.normal(size=tau.shape)
    q = q + POSITION_NOISE * rng.normal(size=q.shape)
    return given, Recording(model.joint_names, time, q, tau, name=f"seed {seed}"), friction


def errors(estimate: Estimate, friction: Friction) -> np.ndarray:
    """Error and standard deviation as shares of Coulomb friction (viscous friction at the fast speed), and whether the
    interval contains the truth, by term and joint ``(3, n, 3)``."""
    rows = []
    for term in TERMS:
        true = getattr(friction, term)
        error = estimate.drive(term) - true
        columns = estimate.layout.drive(term)
        deviation, (low, high) = estimate.standard_deviation[columns], estimate.interval[columns].T
        size = friction.viscous if term == "viscous" else friction.coulomb
        rows.append(np.stack([error / size, deviation / size, (low <= true) & (true <= high)], axis=-1))
    return np.array(rows)


def row(name: str, model: RobotModel, share: float, fit: bool) -> list[str]:
    """Figures of one arm and type of friction."""
    found, present, speeds = [], [], []
    for seed in range(SEEDS):
        given, recording, friction = recorded(model, seed, share)
        if share and not fit:  # the speeds are known
            given = given.with_layout(stribeck_speeds=tuple(friction.stribeck_speed), without_stribeck=())
        estimate = identify(given, [prepare(recording, given)], IdentifyOptions(fit_stribeck_speed=fit))
        found.append(errors(estimate, friction))
        present.append(estimate.layout.with_stribeck)
        speeds.append(np.abs(estimate.layout.stribeck_speed / friction.stribeck_speed - 1))
    every = np.concatenate(found, axis=1)
    terms = TERMS if share else TERMS[:2]
    figures = every[: len(terms)]
    error, deviation, inside = np.moveaxis(figures, -1, 0)
    weight = (deviation > 0) / np.maximum(deviation, 1e-6) ** 2  # this mean is sensitive to a common bias
    columns = (
        (error.mean(axis=1), "+.2f"),
        (np.sum(weight * error, axis=1) / np.sum(weight, axis=1), "+.2f"),
        (np.median(error, axis=1), "+.2f"),
        (inside.mean(axis=1), ".1f"),
    )
    shown = [[f"{100 * value:{form}}" for value in values] for values, form in columns]
    cells = [" / ".join(term) for term in zip(*shown, strict=True)] + [""] * (3 - len(terms))
    friction_type = ("yes" if share else "none") + (", speed fitted" if fit else "")
    speed = f"{100 * np.median(np.concatenate(speeds)):.0f} %" if share and fit else ""
    return [name, friction_type, *cells, f"{np.sum(present)} of {every.shape[1]}", speed]


def main() -> None:
    rows = []
    for name, path in ARMS.items():
        model = load_with_locks(example_urdf(path))
        for share, fit in ((0.0, False), (0.0, True), (0.5, False), (0.5, True)):
            rows.append(row(name, model, share, fit))
            print(rows[-1], flush=True)
    header = ["arm", "Stribeck friction", *TERMS, "joints with Stribeck friction found", "median error of its speed"]
    publish(
        "friction",
        "## Friction of simulated arms\n\nRecordings of 30 s, `prepare` and `identify` with their"
        " defaults, a wrong URDF, noise on positions and torques. Errors [% of the parameter, Stribeck friction % of"
        " Coulomb friction]: mean / mean weighted by the stated variances / median; then coverage of 95 % intervals"
        f" [%]; {SEEDS} seeds, all joints. The data determine low Stribeck speeds only in the product with Stribeck"
        " friction. The errors of this friction are then skewed: their mean is above their median.\n\n"
        f"{table(header, rows)}\n\n{machine()}",
    )


if __name__ == "__main__":
    main()
