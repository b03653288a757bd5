"""A person walking over two force plates: trained on a part of the steps, tested on the rest."""

import logging
from collections.abc import Sequence

import numpy as np
from support.recordings.gait import held_out, read_gait
from tables import datasets, machine, publish, table

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.validation import torque_errors
from inertid_ros.identification.identify import identify
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.identification.solvers.map_problem import fits_at_equal_residual
from inertid_ros.regressors.whole_body_equations import BodySegmentEquations, MatrixEquations

TESTED = {
    "first third": (0, 1 / 3),
    "middle third": (1 / 3, 2 / 3),
    "last third": (2 / 3, 1),
    "last two fifths": (0.6, 1),
}
GROUPS = (slice(0, 3), slice(3, 6))
UP, FORWARD, SIDEWAYS = 1, 0, 2  # axes of the data
BOARD = ("vertical force", "torque about the forward axis", "torque about the sideways axis")
AT_EQUAL_RESIDUAL = ("euclidean", "pullback", "entropic")
# RMS errors in the training and in the test, of vertical force [N] and zero-moment point [cm] ([Lee2019]_ table 3.1).
PRINTED = {
    "prior": (13.79, 2.09, 1.58, 13.32, 2.33, 1.01),
    "euclidean": (12.89, 1.61, 0.82, 13.09, 1.87, 0.95),
    "point_mass": (12.47, 1.64, 0.81, 13.19, 1.83, 0.76),
    "pullback": (12.52, 1.66, 0.81, 13.28, 1.87, 0.78),
    "entropic": (12.51, 1.66, 0.81, 13.28, 1.86, 0.78),
}


def main() -> None:
    logging.disable(logging.WARNING)
    folder = datasets()
    if folder is None:
        return
    equations, samples = read_gait(folder)
    total = float(equations.model.body_prior[:, 0].sum())
    rows = []
    for name, part in TESTED.items():
        fitted, tested = held_out(samples, *part)
        before = torque_errors(equations, equations.model.prior, [tested])
        rows.append([name, "prior", *_errors(before), f"{total:.2f}", ""])
        for label, constraints in (("fitted", Constraints()), ("fitted, weight known", Constraints(total_mass=total))):
            estimate = identify(equations, fitted, constraints=constraints)
            after = torque_errors(equations, estimate.parameters, [tested])
            real = f"{int(is_consistent(estimate.bodies).sum())} of {len(estimate.bodies)}"
            rows.append([name, label, *_errors(after), f"{estimate.bodies[:, 0].sum():.2f}", real])
    header = ["tested on", "parameters", "relative error", "force [N]", "moment [N m]", "mass [kg]", "consistent"]
    text = f"""## A person walking over two force plates

Real data: OpenSim's gait2354, subject 01, {len(samples)} samples at 60 Hz, twelve segments with given motion; the model
of this data set is the prior. Errors are for the held-out part, root mean square of the vector. If the weight is known,
for example by a scale, the total mass is an equality constraint ([Lee2019]_ eq. 3.6.83).

{table(header, rows)}

The same steps on a balance board that is simulated from the plates: only the vertical force and the zero-moment point
are measured, as in [Lee2019]_ sec. 3.6.3, and the weight is known. Fits of one part have the same training residual
([Lee2019]_ sec. 3.5.1), the residual of the entropic fit with its default weight; the fit with point masses has its own
estimated weight. RMS errors over the three thirds, each tested by fits of the other two; in brackets [Lee2019]_ table
3.1, of another person with sixteen segments, a depth camera and motions without steps.

{_board_table(equations, samples, total)}

{machine()}"""
    publish("gait", text)


def _board_table(equations: BodySegmentEquations, samples: Samples, total: float) -> str:
    """Errors of the vertical force and of the zero-moment point, in the training and in the test."""
    board, on_board = balance_board(equations, samples)
    thirds = [held_out(on_board, *TESTED[name]) for name in ("first third", "middle third", "last third")]
    errors: dict[str, list[list[float]]] = {name: [] for name in PRINTED}
    constraints = Constraints(total_mass=total)
    for fitted, tested in thirds:
        default = identify(board, fitted, constraints=constraints).parameters
        residual = sum(float(np.sum((board.predict(default, part) - part.tau) ** 2)) for part in fitted)
        fits = fits_at_equal_residual(board, fitted, residual, AT_EQUAL_RESIDUAL, constraints)
        point_masses = identify(board, fitted, IdentifyOptions(regularizer="point_mass"), constraints)
        estimates = {"prior": board.model.prior, "point_mass": point_masses.parameters}
        estimates |= {name: fit.parameters for name, fit in fits.items()}
        for name, parameters in estimates.items():
            parts = (fitted, [tested])
            errors[name].append([error for part in parts for error in _board_errors(board, parameters, part)])
    rows = []
    for name, of_thirds in errors.items():
        cells = zip(np.sqrt(np.mean(np.square(of_thirds), axis=0)), PRINTED[name], strict=True)
        rows.append([name, *(f"{value:.3g} ({printed:g})" for value, printed in cells)])
    measures = ("force [N]", "forward [cm]", "sideways [cm]")
    header = [f"{which}: {measure}" for which in ("training", "test") for measure in measures]
    return table(["parameters", *header], rows)


def balance_board(equations: BodySegmentEquations, samples: Samples) -> tuple[MatrixEquations, Samples]:
    """Equations of the vertical force and of both torques along the ground, about the origin on the ground.

    These three are the vertical force and its zero-moment point; forces along the ground do not enter.
    """

    def on_ground(wrench: Array) -> Array:
        """Rows ``(N, 3, ...)`` from wrenches ``(N, 6, ...)`` about the origin of the first segment."""
        force, torque = wrench[:, :3], wrench[:, 3:]
        about_ground = torque + np.cross(samples.q[:, :3, None], force.reshape(len(force), 3, -1), axis=1).reshape(
            torque.shape)
        return np.stack([force[:, UP], about_ground[:, FORWARD], about_ground[:, SIDEWAYS]], axis=1)

    A = on_ground(equations.coefficients(samples, slice(None)))
    return MatrixEquations.from_matrix(A, on_ground(samples.tau), equations.model, channels=BOARD)


def _board_errors(board: MatrixEquations, parameters: Array, parts: Sequence[Samples]) -> Array:
    """RMS errors ``(3,)`` of the vertical force [N] and of the zero-moment point [cm]."""
    errors = []
    for samples in parts:
        measured, predicted = _force_and_point(samples.tau), _force_and_point(board.predict(parameters, samples))
        errors.append(predicted - measured)
    return np.sqrt(np.mean(np.square(np.concatenate(errors)), axis=0))


def _force_and_point(wrench: Array) -> Array:
    """Vertical force [N] and zero-moment point, forward and sideways [cm], ``(N, 3)``."""
    force = wrench[:, 0]
    return np.column_stack([force, 100 * wrench[:, 2] / force, -100 * wrench[:, 1] / force])


def _errors(errors) -> list[str]:
    norms = [np.linalg.norm(errors.rms_error[group]) for group in GROUPS]
    return [f"{100 * errors.relative_error:.2f} %", *(f"{norm:.1f}" for norm in norms)]


if __name__ == "__main__":
    main()
