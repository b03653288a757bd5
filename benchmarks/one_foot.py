"""A humanoid on one foot and one force plate: full and reduced identification, as in [Lee2019]_ sec. 4.6.3."""

import logging
from dataclasses import replace

import numpy as np
import pinocchio as pin
from studies.exoskeleton_data import plate_model
from studies.one_foot import FORCE_NOISE, MOMENT_NOISE, one_foot
from tables import machine, publish, table

from inertid_ros.config.identification import LeastSquaresOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import PSEUDO_INERTIA_BASIS, from_pseudo_inertia, pseudo_inertia
from inertid_ros.core.samples import Samples
from inertid_ros.identification.identify import IdentifyOptions, identify
from inertid_ros.identification.least_squares import least_squares
from inertid_ros.identification.solvers.coordinates import PULLBACK
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.model import RobotModel

MOTIONS, DRAWS, SEED, EVERY = 10, 5, 0, 5
PRINTED: dict[str, tuple[float, ...]] = {
    "prior": (0.269, 61.768, 11.770),
    "full": (2048.3, 0.017, 0.141),
    "reduced": (0.154, 0.009, 0.024),
}
GROUPS = ("hip", "knee", "ankle", "waist", "shoulder", "elbow", "wrist")
PRINTED_TORQUE: dict[str, tuple[float, ...]] = {
    "prior": (11.279, 14.834, 10.101, 11.717, 1.011, 0.304, 0.062),
    "full": (0.131, 0.132, 0.119, 0.135, 0.053, 0.034, 0.015),
    "reduced": (0.019, 0.017, 0.034, 0.018, 0.009, 0.008, 0.002),
}
PRINTED_ACCELERATION: dict[str, tuple[float, ...]] = {
    "prior": (4.584, 4.399, 8.304, 4.767, 2.908, 3.643, 22.351),
    "full": (1.197, 0.799, 5.820, 0.400, 0.238, 1.062, 18.494),
    "reduced": (0.120, 0.119, 0.818, 0.076, 0.035, 0.123, 2.122),
}


def parameter_error(parameters: Array, truth: RobotModel, prior: RobotModel, directions: Array) -> float:
    """Root mean square error of the base parameters under the metric of the prior ([Lee2019]_ eq. 4.3.35, sec. 4.6.2).

    ``directions (p, r)`` span the base parameters and are orthonormal under this metric.
    """
    error = []
    for body, true, given in zip(truth.layout.bodies(parameters), truth.body_prior, prior.body_prior, strict=True):
        L = np.linalg.cholesky(pseudo_inertia(given))
        matrix = from_pseudo_inertia(L @ PSEUDO_INERTIA_BASIS @ L.T).T
        error.append(np.linalg.solve(matrix.T, PULLBACK @ np.linalg.solve(matrix, body - true)))
    return float(np.sqrt(np.mean((directions.T @ np.concatenate(error)) ** 2)))


class Evaluation:
    """Errors on held-out motions without noise."""

    def __init__(self, robot, motions: list[Samples]) -> None:
        self._robot, self._model, self._motions = robot, robot.model, motions
        self._groups = [[i for i, name in enumerate(robot.model.joint_names) if group in name] for group in GROUPS]

    def wrench(self, parameters: Array) -> tuple[float, float]:
        """RMS of the norms of the plate's force error [N] and moment error [N m]."""
        errors = [self._robot.plate_wrench(m.q, self._missed(parameters, m)) for m in self._motions]
        whole = np.vstack(errors)
        return tuple(float(np.sqrt(np.mean(np.sum(part**2, axis=1)))) for part in (whole[:, :3], whole[:, 3:]))

    def joints(self, parameters: Array) -> tuple[Array, Array]:
        """RMS torque error per joint group with the foot held [N m], and the acceleration error that it causes on the
        true robot [rad/s^2]."""
        kinematics, torques, accelerations = self._model.pinocchio, [], []
        data, foot = kinematics.createData(), kinematics.getFrameId(self._robot.robot.soles[0].frame)
        for motion in self._motions:
            for q, missed in zip(motion.q[::EVERY], self._missed(parameters, motion)[::EVERY], strict=True):
                pin.crba(kinematics, data, q)
                whole = np.triu(data.M) + np.triu(data.M, 1).T
                jacobian = pin.computeFrameJacobian(kinematics, data, q, foot, pin.ReferenceFrame.LOCAL)
                held = np.vstack([-np.linalg.solve(jacobian[:, :6], jacobian[:, 6:]), np.eye(self._model.joints)])
                torques.append(held.T @ missed)
                accelerations.append(np.linalg.solve(held.T @ whole @ held, torques[-1]))
        return tuple(
            np.array([np.sqrt(np.mean(np.square(rows)[:, group])) for group in [*self._groups, slice(None)]])
            for rows in (np.array(torques), np.array(accelerations))
        )

    def _missed(self, parameters: Array, motion: Samples) -> Array:
        equations = ForceEquations(self._model)
        return equations.predict(self._model.prior, motion) - equations.predict(parameters, motion)


def main() -> None:
    logging.disable(logging.WARNING)
    rng = np.random.default_rng(SEED)
    robot = one_foot(plate_model)
    motions = [robot.motion(rng) for _ in range(2 * MOTIONS)]
    tested, truth = motions[MOTIONS:], robot.model
    evaluation, found, ranks = Evaluation(robot, tested), {}, []
    for _ in range(DRAWS):
        fitted = [robot.noisy(motion, rng) for motion in motions[:MOTIONS]]
        given = replace(truth, body_prior=perturb(truth, rng))
        reduced = least_squares(given, fitted, LeastSquaresOptions(rank="auto", independent=True))
        ranks.append(reduced.rank)
        estimates = {
            "prior": given.prior,
            "full": least_squares(given, fitted, LeastSquaresOptions(independent=True)).parameters,
            "reduced": reduced.parameters,
            "consistent": identify(given, fitted, IdentifyOptions()).parameters,
        }
        for name, parameters in estimates.items():
            error = parameter_error(parameters, truth, given, reduced.spectrum.directions)
            wrench = np.array([error, *evaluation.wrench(parameters)])
            found.setdefault(name, []).append((wrench, *evaluation.joints(parameters)))
    errors: list[list[object]] = []
    torque: list[list[object]] = []
    acceleration: list[list[object]] = []
    for name, draws in found.items():
        medians = [np.median(part, axis=0) for part in zip(*draws, strict=True)]
        for table_rows, values, printed in zip(
            (errors, torque, acceleration), medians, (PRINTED, PRINTED_TORQUE, PRINTED_ACCELERATION), strict=True
        ):
            table_rows.append([name, *_cells(values, printed.get(name))])
    publish(
        "one-foot",
        f"""## A humanoid on one foot and one force plate, compared with published figures

The study of [Lee2019]_ sec. 4.6.3. Atlas is not in example-robot-data: the Unitree G1 replaces it, {truth.joints}
joints and {len(truth.link_names)} bodies, on its right foot, with a fifth of Atlas' weight. The fit uses {MOTIONS}
random motions in dynamic balance, the evaluation {MOTIONS} further motions without noise, 3 s at 300 Hz each. Sensors
are the plate and the encoders; the plate's noise is as published, {FORCE_NOISE:g} N and {MOMENT_NOISE:g} N m. The prior
is the truth with added point masses ([Lee2019]_ sec. B.2); medians over {DRAWS} draws of prior and noise. Reduced
identification with `rank="auto"` has {min(ranks)} to {max(ranks)} of {reduced.spectrum.count} directions (published:
70 of 204). The parameter error is the root mean square over the base parameters, in the metric of the prior. Published
figures are in brackets. "Consistent" is this library's default.

{table(["parameters", "parameter error", "plate force [N]", "plate moment [N m]"], errors)}

Joint torque error [N m], foot held, RMS over each group:

{table(["parameters", *GROUPS, "all"], torque)}

Acceleration error [rad/s^2]:

{table(["parameters", *GROUPS, "all"], acceleration)}

{machine()}""",
    )


def _cells(values, printed) -> list[str]:
    printed = [*(printed or ()), *([None] * len(values))][: len(values)]
    return [f"{v:.3g}" + (f" ({p:g})" if p is not None else "") for v, p in zip(values, printed, strict=True)]


if __name__ == "__main__":
    main()
