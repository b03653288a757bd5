"""Validation on held-out data: torque errors of the result and of the URDF as given, and what they show.

An error of a joint is measured on the scale of that joint's own torque: a wrist that has hardly any is not held to the
torque of a shoulder. Rigid bodies and friction leave errors of many times the sensor's noise on every real robot, so
that the noise alone decides nothing: it only separates small errors that are noise from others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.delay import without_delay
from inertid_ros.identification.information.information import compress
from inertid_ros.regressors.equations import Equations, equations_of
from inertid_ros.robot.model import RobotModel

from .estimate import Estimate
from .gate import check_solution
from .torque_confidence import TorqueScale

_USELESS_ERROR = 1.0  # error over torque: no model at all does as well
_UNEXPLAINED_ERROR = 0.8  # error over variation of a joint's torque: R^2 below 0.36; 1 is a model of the mean alone
# Error added to that of the URDF, as shares of the torque: within the scatter between motions, and 1 and 9 % of the
# mean square of the torque.
_HARDLY_WORSE_SHARE, _WORSE_SHARE, _MUCH_WORSE_SHARE = 0.03, 0.1, 0.3
_MAX_NOISE_FACTOR = 3.0  # times the sensor's noise, beyond which an error is not noise
_MAX_EXPECTED_FACTOR = 3.0  # times the error that the fit expects: that is, beyond its 99 % interval
_MATERIAL_SHARE = 0.25  # of a joint's torque; smaller errors are no concern however unexpected or unexplained
_MINOR_TORQUE_SHARE = 0.05  # of the largest torque of any joint; a joint with less does not make a result useless
_MIN_NOISE_SHARE = 1e-6  # of the torque; less is no noise of a sensor


@dataclass(frozen=True)
class ErrorComparison:
    """Torque errors of a parameter set on recordings, with the scales that they are measured by.

    Attributes
    ----------
    error : ndarray, shape (c,)
        Root mean square over all usable samples [N m or N].
    given : ndarray or None, shape (c,)
        Root mean square error of the URDF as given; None without one to compare with.
    relative : tuple[float, float | None]
        Error over torque of all channels together: of the parameter set, of the URDF.
    scale : TorqueScale
        Torque of each joint: the largest in these and other recordings, and over its range.
    noise : ndarray, shape (c,)
        Standard deviation of the sensor's noise below the cutoff; zero if unknown.
    sliding, expected : ndarray or None, shape (c,)
        Error over the samples that a fit would use, and its expectation by the residual and the covariance of the
        parameters; None if these are unknown.
    """

    channels: tuple[str, ...]
    error: Array
    given: Array | None
    relative: tuple[float, float | None]
    scale: TorqueScale
    noise: Array
    sliding: Array | None = None
    expected: Array | None = None
    quantity: tuple[str, str] = ("torque", "N m or N")

    @property
    def case(self) -> str:
        """Case of the remedies: momentum if no torque is measured."""
        return "" if self.quantity[0] == "torque" else "momentum"


def check_errors(errors: ErrorComparison) -> tuple[Finding, ...]:
    """Findings of all channels together, then channel by channel."""
    channels = [channel for channel in range(len(errors.channels)) if errors.scale.torque[channel] > 0]
    checks = (_unexplained, _worse, _unexpected)
    by_channel = (finding for check in checks for channel in channels for finding in check(errors, channel))
    return (*_overall(errors), *by_channel)


def _overall(errors: ErrorComparison) -> Iterator[Finding]:
    (calibrated, prior), (quantity, _) = errors.relative, errors.quantity
    if not calibrated < _USELESS_ERROR:
        evidence = f"the {quantity} error is {100 * calibrated:.2f} % of the {quantity} itself"
        evidence += ", worse than no model at all"
        yield Finding.with_remedy("worse_than_nothing", Severity.REJECT, evidence, case=errors.case)
    if prior is not None and not calibrated < prior:
        added = float(np.sqrt(calibrated**2 - prior**2))
        severity = Severity.CARE if added <= _HARDLY_WORSE_SHARE else Severity.REJECT
        evidence = (
            f"the {quantity} error over all channels is {100 * calibrated:.2f} % against {100 * prior:.2f} % of the"
            " URDF as given"
        )
        yield Finding.with_remedy("worse_than_urdf", severity, evidence, case="all_joints")


def _unexplained(errors: ErrorComparison, channel: int) -> Iterator[Finding]:
    """Neither the model nor noise explains the torque of a channel."""
    (quantity, unit), name = errors.quantity, errors.channels[channel]
    error, noise, scale = errors.error[channel], errors.noise[channel], errors.scale.torque[channel]
    variation = errors.scale.variation[channel]
    if error <= max(_UNEXPLAINED_ERROR * variation, _MATERIAL_SHARE * scale, _MAX_NOISE_FACTOR * noise):
        return
    useless = error > _USELESS_ERROR * variation and scale > _MINOR_TORQUE_SHARE * errors.scale.torque.max()
    noisy = f", {error / noise:.0f} times the noise of its effort" if noise > 0 else ""
    evidence = f"{name}: error {error:.3g} of a {quantity} that varies by {variation:.3g} {unit} (RMS){noisy}"
    severity = Severity.REJECT if useless else Severity.CARE
    yield Finding.with_remedy("above_noise", severity, evidence, name, case=errors.case)


def _worse(errors: ErrorComparison, channel: int) -> Iterator[Finding]:
    """The error is larger than that of the URDF as given."""
    if errors.given is None:
        return
    (quantity, unit), name = errors.quantity, errors.channels[channel]
    error, prior, scale = errors.error[channel], errors.given[channel], errors.scale.torque[channel]
    added = float(np.sqrt(max(error**2 - prior**2, 0.0))) / scale
    if added <= _HARDLY_WORSE_SHARE or error <= _MAX_NOISE_FACTOR * errors.noise[channel]:
        return
    grave = added > _MUCH_WORSE_SHARE and scale > _MINOR_TORQUE_SHARE * errors.scale.torque.max()
    severity = Severity.REJECT if grave else Severity.CARE if added > _WORSE_SHARE else Severity.NOTICE
    evidence = f"{name}: error {error:.3g} against {prior:.3g} of the URDF as given"
    evidence += f", of a {quantity} of {scale:.3g} {unit} (RMS)"
    yield Finding.with_remedy("worse_than_urdf", severity, evidence, name, case=errors.case)


def _unexpected(errors: ErrorComparison, channel: int) -> Iterator[Finding]:
    """The error is much larger than the fit and its uncertainty predict."""
    if errors.sliding is None or errors.expected is None:
        return
    name, error, expected = errors.channels[channel], errors.sliding[channel], errors.expected[channel]
    if error > _MAX_EXPECTED_FACTOR * expected and error > _MATERIAL_SHARE * errors.scale.torque[channel]:
        times = error / expected
        evidence = f"{name}: error {error:.3g} on held-out data, {times:.1f} times what the fit makes expect"
        yield Finding.with_remedy("does_not_generalise", Severity.CARE, evidence, name)


@dataclass(frozen=True)
class TorqueErrors:
    """Torque errors of one parameter set on one set of recordings.

    Attributes
    ----------
    relative_error : float
        ``|error| / |torque|`` over all channels and samples.
    rms_torque, rms_error : ndarray, shape (c,)
        Per channel of the equations [N m or N of forces]; zero without measurement.
    rms_error_sliding, rms_error_resting : ndarray, shape (c,)
        The error while all drives that act on the channel slide, and while one rests or hardly moves, so that it
        contains stiction, which no model here has; NaN without such a sample.
    r_squared : ndarray or None, shape (c,)
        Share of the torque's variance about its mean that is explained; negative if the mean alone does better, NaN
        without variation.
    noise : ndarray or None, shape (c,)
        Standard deviation of the sensor's noise below the cutoff, the least possible error; NaN if unknown.
    """

    relative_error: float
    rms_torque: Array
    rms_error: Array
    rms_error_sliding: Array
    rms_error_resting: Array
    samples: int
    recordings: tuple[str, ...]
    quantity: str = "torque"
    unit: str = "N m or N"
    r_squared: Array | None = None
    noise: Array | None = None


@dataclass(frozen=True)
class BandErrors:
    """Torque errors in a band of frequencies that does not depend on the recordings.

    Attributes
    ----------
    cutoff_hz : float
        Cutoff of the low-pass on motion and torque alike [Hz].
    """

    cutoff_hz: float
    calibrated: TorqueErrors
    prior: TorqueErrors


@dataclass(frozen=True)
class Validation:
    """Held-out errors of the estimate and of the URDF as given, with findings.

    Attributes
    ----------
    findings : tuple of Finding
        Findings on the result, notices included.
    blocks : int
        Number of blocks of the data fitted, each held out in turn; 0 if other recordings were held out.
    """

    calibrated: TorqueErrors
    prior: TorqueErrors
    findings: tuple[Finding, ...] = ()
    blocks: int = 0

    @property
    def passed(self) -> bool:
        return all(finding.severity < Severity.REJECT for finding in self.findings)

    @property
    def comparison(self) -> str:
        """Both errors in one clause."""
        calibrated, prior = 100 * self.calibrated.relative_error, 100 * self.prior.relative_error
        error = f"{self.calibrated.quantity} error {calibrated:.2f} % against {prior:.2f} % of the URDF as given"
        return f"{error} on blocks of the data fitted, each held out in turn" if self.blocks else f"held-out {error}"

    @property
    def message(self) -> str:
        """One line with the errors, and the reason of a rejection."""
        rejected = [finding for finding in self.findings if finding.severity >= Severity.REJECT]
        return f"rejected: {self.comparison}; {rejected[0]}" if rejected else f"accepted: {self.comparison}"


def torque_errors(equations: RobotModel | Equations, parameters: Array, recordings: Sequence[Samples]) -> TorqueErrors:
    """Errors of predicted torque over every usable sample.

    Slow samples, masked for a single joint in the fit, are predicted as well, since a controller moves slowly too.

    Parameters
    ----------
    equations : RobotModel or Equations
        A robot stands for its equations of force.
    """
    return errors_of_each(equations, [(parameters, samples) for samples in recordings])


def errors_of_each(
    equations: RobotModel | Equations, predictions: Sequence[tuple[Array, Samples]]
) -> TorqueErrors:
    """Errors over all samples, each recording's torque predicted by its own parameters ``(p,)``."""
    equations = equations_of(equations)
    torque, error, measured, sliding = [], [], [], []
    for parameters, samples in predictions:
        used = samples.usable
        valid = samples.valid[used]
        measured.append(valid)
        sliding.append(valid if samples.sliding is None else valid & samples.sliding[used])
        torque.append(np.where(valid, samples.tau[used], 0.0))
        predicted = equations.predict(parameters, samples)[used]
        error.append(np.where(valid, predicted - samples.tau[used], 0.0))
    tau, residual = np.concatenate(torque), np.concatenate(error)
    every, slides = np.concatenate(measured), np.concatenate(sliding)
    names = dict.fromkeys(samples.name for _, samples in predictions)
    if not tau.any():
        raise IdentificationError(
            f"{', '.join(names)}: no usable sample or zero effort throughout; record motion with effort"
        )
    return TorqueErrors(
        relative_error=float(np.linalg.norm(residual) / np.linalg.norm(tau)),
        rms_torque=np.nan_to_num(_rms(tau, every)),
        rms_error=np.nan_to_num(_rms(residual, every)),
        rms_error_sliding=_rms(residual, slides),
        rms_error_resting=_rms(residual, every & ~slides),
        samples=len(tau),
        recordings=tuple(names),
        quantity=equations.quantity[0],
        unit=equations.quantity[1],
        r_squared=_explained(tau, residual, every),
        noise=_known_noise(_noise(equations, [samples for _, samples in predictions]), tau),
    )


def _known_noise(noise: Array, measured: Array) -> Array:
    """Noise ``(c,)``; NaN if a driver has low-passed it out of the band in which noise is measured."""
    return np.where(noise > _MIN_NOISE_SHARE * np.sqrt(np.mean(measured**2, axis=0)), noise, np.nan)


def _rms(values: Array, of: NDArray[np.bool_]) -> Array:
    """Root mean square ``(c,)`` of some values ``(N, c)``; NaN without values."""
    counts = of.sum(axis=0)
    squares = np.sum(np.where(of, values, 0.0) ** 2, axis=0)
    return np.sqrt(np.divide(squares, counts, out=np.full(len(counts), np.nan), where=counts > 0))


def _explained(values: Array, residual: Array, of: NDArray[np.bool_]) -> Array:
    """Coefficient of determination ``(c,)`` of some values ``(N, c)``; NaN without variation."""
    mean = np.sum(np.where(of, values, 0.0), axis=0) / np.maximum(of.sum(axis=0), 1)
    total = np.sum(np.where(of, values - mean, 0.0) ** 2, axis=0)
    left = np.sum(np.where(of, residual, 0.0) ** 2, axis=0)
    return 1.0 - np.divide(left, total, out=np.full(len(total), np.nan), where=total > 0)


def validate(estimate: Estimate, recordings: Sequence[Samples]) -> Validation:
    """Validate an estimate on recordings that it was not fitted to, with the estimated delay of effort removed."""
    recordings = [without_delay(samples, estimate.delay) for samples in recordings]
    calibrated = torque_errors(estimate.equations, estimate.parameters, recordings)
    prior = torque_errors(estimate.equations, estimate.prior, recordings)
    fitted = TorqueScale.of_information(estimate.information)
    both = estimate.prior, estimate.parameters
    errors = compared(estimate.equations, both, recordings, (calibrated, prior), fitted)
    errors = with_expected(errors, estimate, recordings)
    return Validation(calibrated, prior, (*check_solution(estimate), *check_errors(errors)))


def compared(
    equations: Equations,
    parameters: tuple[Array, Array],
    recordings: Sequence[Samples],
    errors: tuple[TorqueErrors, TorqueErrors | None],
    other: TorqueScale | None = None,
) -> ErrorComparison:
    """Compare errors of a parameter set with those of the URDF as given, if there is one.

    Parameters
    ----------
    parameters : tuple of ndarray, shape (p,)
        Of the URDF as given and of the set. Torque over the robot's range is that of the bodies as given with the
        drives of the set: friction is most of a wrist's torque and in no URDF; but bodies that came out far too heavy
        must not excuse the errors that they make.
    other : TorqueScale, optional
        Torque in other recordings.
    """
    calibrated, prior = errors
    size = equations.model.layout.inertial_size
    typical = np.concatenate([parameters[0][:size], parameters[1][size:]])
    scale = TorqueScale.of_recordings(recordings) | TorqueScale.over_range(equations, typical)
    if other is not None:
        scale = scale | other
    return ErrorComparison(
        tuple(equations.channels),
        calibrated.rms_error,
        None if prior is None else prior.rms_error,
        (calibrated.relative_error, None if prior is None else prior.relative_error),
        scale.of_measured(calibrated.rms_torque, equations),
        _noise(equations, recordings),
        quantity=equations.quantity,
    )


def with_expected(errors: ErrorComparison, estimate: Estimate, recordings: Sequence[Samples]) -> ErrorComparison:
    """Add the error that an estimate's residual and covariance predict on the samples of a fit."""
    information = compress(estimate.equations, recordings)
    values, vectors = np.linalg.eigh(estimate.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    by_parameters = np.array(
        [np.sum((c.r_factor[:, :-1] @ root[c.columns]) ** 2) / max(c.count, 1) for c in information.channels]
    )
    expected = np.sqrt(estimate.residual_deviation**2 + by_parameters)
    return replace(errors, sliding=information.rms_error(estimate.parameters), expected=expected)


def _noise(equations: Equations, recordings: Sequence[Samples]) -> Array:
    """Noise ``(c,)`` of the measurement below the cutoff, the largest that recordings report."""
    noise = np.zeros(equations.count)
    for samples in recordings:
        if samples.effort_noise is not None and len(noise[equations.joint_channels]) == len(samples.effort_noise):
            noise[equations.joint_channels] = np.maximum(noise[equations.joint_channels], samples.effort_noise)
    return noise
