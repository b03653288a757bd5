"""Validation on held-out data, and the gate that a result must pass before any controller uses it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.delay import without_delay
from inertid_ros.regressors.equations import Equations, equations_of
from inertid_ros.robot.model import RobotModel

from .estimate import Estimate


@dataclass(frozen=True)
class TorqueErrors:
    """Torque errors of one parameter set on one set of recordings.

    Attributes
    ----------
    relative_error : float
        ``|error| / |torque|`` over all channels and samples.
    rms_torque, rms_error : ndarray, shape (c,)
        Per channel of the equations [N m or N of forces]; zero where nothing was measured.
    samples : int
        Number of samples.
    recordings : tuple of str
        Their names.
    """

    relative_error: float
    rms_torque: Array
    rms_error: Array
    samples: int
    recordings: tuple[str, ...]


@dataclass(frozen=True)
class Validation:
    """Held-out errors of the estimate and of the URDF as given, and whether it passes.

    Attributes
    ----------
    passed : bool
        Better than the prior, physically consistent and optimal.
    message : str
        One line with the errors, or why it was rejected.
    """

    calibrated: TorqueErrors
    prior: TorqueErrors
    passed: bool
    message: str


def torque_errors(equations: RobotModel | Equations, parameters: Array, recordings: Sequence[Samples]) -> TorqueErrors:
    """Errors of predicted torque over every usable sample.

    Slow samples, masked for a single joint in the fit, are predicted as well, since a controller moves slowly too.

    Parameters
    ----------
    equations : RobotModel or Equations
        A robot stands for its equations of force.
    """
    equations = equations_of(equations)
    torque, error, counts = [], [], np.zeros(equations.count, dtype=int)
    for samples in recordings:
        used = samples.usable
        valid = samples.valid[used]
        counts += valid.sum(axis=0)
        torque.append(np.where(valid, samples.tau[used], 0.0))
        predicted = equations.predict(parameters, samples)[used]
        error.append(np.where(valid, predicted - samples.tau[used], 0.0))
    tau, residual = np.concatenate(torque), np.concatenate(error)
    counts = np.maximum(counts, 1)
    if not tau.any():
        names = ", ".join(samples.name for samples in recordings)
        raise IdentificationError(f"{names}: no usable sample or zero effort throughout; record motion with effort")
    return TorqueErrors(
        relative_error=float(np.linalg.norm(residual) / np.linalg.norm(tau)),
        rms_torque=np.sqrt(np.sum(tau**2, axis=0) / counts),
        rms_error=np.sqrt(np.sum(residual**2, axis=0) / counts),
        samples=len(tau),
        recordings=tuple(samples.name for samples in recordings),
    )


def validate(estimate: Estimate, recordings: Sequence[Samples]) -> Validation:
    """Validate an estimate on recordings that it was not fitted to, with the estimated delay of effort removed."""
    recordings = [without_delay(samples, estimate.delay) for samples in recordings]
    calibrated = torque_errors(estimate.equations, estimate.parameters, recordings)
    prior = torque_errors(estimate.equations, estimate.prior, recordings)
    change = f"held-out torque error {100 * calibrated.relative_error:.2f} % against {100 * prior.relative_error:.2f} %"
    if not estimate.consistent:
        verdict, message = False, "rejected: a link is not physically consistent"
    elif estimate.solution.status != "optimal":
        verdict, message = False, f"rejected: the solver stopped with '{estimate.solution.status}'"
    elif not calibrated.relative_error < 1.0:
        verdict, message = False, f"rejected: {change}, worse than no model at all; check sign and units of effort"
    elif not calibrated.relative_error < prior.relative_error:
        verdict, message = False, f"rejected: {change} of the URDF as given; record a richer motion"
    else:
        verdict, message = True, f"accepted: {change} of the URDF as given"
    return Validation(calibrated, prior, verdict, message)
