"""Compare a fit with yesterday's result as prior with the joint fit of both days, and identify a payload from it."""

import logging
import tempfile
from pathlib import Path

import numpy as np
from studies.simulated_panda import MODEL, SimulatedPanda
from tables import machine, publish, table

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.robot import LoadOptions, RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.data.recording import Recording
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.report.results import CalibrationOutcome

SEEDS, SECONDS, SHORT_S, WARM = range(5), 20.0, 5.0, 0.7
PAYLOAD = {"payload": LoadOptions("panda_link8", 1.5, ("payload*",), com=(0.05, 0.02, 0.08))}
COLUMNS = ("recorded today [s]", "held-out error [%]", "error of base parameters", "from the joint fit", "deviation")


class Study:
    """One arm over two days: today's fits, and their distances from the truth and from the joint fit.

    Parameters
    ----------
    seed : int
        Seed of the arm.
    friction : float
        Friction of the second day, as a share of the first day's friction.
    """

    def __init__(self, seed: int, friction: float) -> None:
        self.arm, self.seed = SimulatedPanda(seed, PAYLOAD, SECONDS), seed
        self.first, self.second, self.tested = (
            self.arm.record(name, motion, share)
            for name, motion, share in (("yesterday", 0, 1.0), ("today", 1, friction), ("test", 2, friction))
        )

    def fit(self, recordings: list[Recording], **options: object) -> CalibrationOutcome:
        """Calibrate with the whole offline path."""
        robot = RobotOptions(locked_joints=MODEL.locked_joints)
        configuration = Configuration(robot, identify=IdentifyOptions(**options))
        return calibrate(self.arm.given, recordings, [self.tested], configuration)

    def fits(self, directory: Path) -> dict[str, tuple[float, CalibrationOutcome]]:
        """Seconds recorded today, and outcome, by name."""
        prior = str(self.fit([self.first]).save(directory / "yesterday"))
        return {
            "yesterday alone": (0.0, self.fit([self.first])),
            "today alone": (SECONDS, self.fit([self.second])),
            "both days recorded today": (2 * SECONDS, self.fit([self.first, self.second])),
            "continued": (SECONDS, self.fit([self.second], prior=prior)),
            "continued, friction shared": (SECONDS, self.fit([self.second], prior=prior, changing_terms=())),
        }

    def rows(self) -> dict[str, list[float]]:
        """Values of :data:`COLUMNS` by name."""
        with tempfile.TemporaryDirectory() as directory:
            fits = self.fits(Path(directory))
        model = self.arm.given
        joint = fits["both days recorded today"][1].estimate
        projection = base_parameters_of_robot(model).projection[:, : model.layout.body_size]
        used = np.linalg.norm(projection, axis=1) > 0
        projection = projection[used]
        truth, bodies = self.arm.true.body_prior.ravel(), slice(0, model.layout.body_size)
        scale = _deviations(projection, joint.covariance[bodies, bodies])
        rows = {}
        for name, (seconds, outcome) in fits.items():
            estimate = outcome.estimate
            error = projection @ (estimate.parameters[bodies] - truth)
            away = projection @ (estimate.parameters - joint.parameters)[bodies]
            deviation = _deviations(projection, estimate.covariance[bodies, bodies])
            rows[name] = [
                seconds,
                100 * outcome.validation.calibrated.relative_error,
                float(np.sqrt(np.mean((error / scale) ** 2))),
                float(np.mean(np.abs(away) < 1.96 * np.maximum(deviation, scale))),
                float(np.median(deviation / scale)),
            ]
        return rows


def payload_of(seed: int) -> list[float]:
    """Held-out errors [%] with a payload after a short motion: from the URDF, and from the earlier result."""
    arm = SimulatedPanda(seed, PAYLOAD, SECONDS)
    short = SimulatedPanda(seed, PAYLOAD, SHORT_S)
    tested, recording = arm.record("payload, test", 2), short.record("payload", 1)
    errors = []
    with tempfile.TemporaryDirectory() as directory:
        robot = RobotOptions(locked_joints=MODEL.locked_joints)
        yesterday = calibrate(arm.given, [arm.record("yesterday", 0)], (), Configuration(robot))
        prior = str(yesterday.save(Path(directory) / "yesterday"))
        for options in ({}, {"prior": prior, "spread": {"panda_link7": 3.0}}):
            configuration = Configuration(robot, identify=IdentifyOptions(**options))
            outcome = calibrate(arm.given, [recording], [tested], configuration)
            errors.append(100 * outcome.validation.calibrated.relative_error)
    return errors


def _deviations(projection: Array, covariance: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("ij,jk,ik->i", projection, covariance, projection)))


def _table(friction: float) -> str:
    studies = [Study(seed, friction).rows() for seed in SEEDS]
    rows = []
    for name in studies[0]:
        values = np.median([study[name] for study in studies], axis=0)
        seconds, held_out, error, within, deviation = values
        numbers = (f"{held_out:.2f}", f"{error:.2f}", f"{100 * within:.0f} %", f"{deviation:.2f}")
        rows.append([name, f"{seconds:g}", *numbers])
    return table(["fit", *COLUMNS], rows)


def main() -> None:
    logging.disable(logging.WARNING)
    payload = np.array([payload_of(seed) for seed in SEEDS])
    text = f"""## Continued from yesterday

A simulated Panda with a wrong URDF, random motions of {SECONDS:g} s a day, {len(SEEDS)} seeds, medians
(`inertid identify today --prior yesterday`). Columns: error of the bodies' base parameters against the truth (root mean
square, in standard deviations of the joint fit of both days); share of base parameters within the 95 % interval around
the joint fit; median ratio of the stated deviation to the deviation of the joint fit.

Equal friction on both days:

{_table(1.0)}

Friction of the second day is {100 * WARM:.0f} % of the first day's friction; the joint fit has one friction for both
days, the continued fit has its own (`identify.changing_terms`):

{_table(WARM)}

A payload of 1.5 kg, recorded for {SHORT_S:g} s (`identify.spread: {{panda_link7: 3}}`): held-out error
{np.median(payload[:, 1]):.2f} % from the earlier result, {np.median(payload[:, 0]):.2f} % from the URDF (medians;
better in {int((payload[:, 1] < payload[:, 0]).sum())} of {len(payload)} seeds).

{machine()}"""
    publish("continued", text)


if __name__ == "__main__":
    main()
