"""Validation on held-out data: torque errors of the result and of its prior, and findings on these errors.

The error of a joint is measured relative to its own torque: a wrist with little torque is not compared with a
shoulder. On every real robot, a model of rigid bodies and friction has errors of many times the sensor's noise. So
exceeding the noise alone is no reason to reject; noise only identifies small errors as noise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from inertid_ros.core.arrays import Array, Mask
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.findings import Finding, Severity, causes_of_symptom
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.delay import without_delay
from inertid_ros.identification.information.information import compress
from inertid_ros.regressors.equations import Equations, equations_of
from inertid_ros.robot.model import RobotModel

from .estimate import Estimate
from .gate import check_solution
from .torque_confidence import TorqueScale

_USELESS_ERROR = 1.0  # error over torque: a prediction of zero has this error
_UNEXPLAINED_ERROR = 0.8  # error over variation of a joint's torque: R^2 of 0.36; predicting the mean gives 1
# Root of the increase of the squared error over the URDF's, as shares of the torque: the first is within the scatter
# between motions, the second and third are 1 and 9 % of the mean square of the torque.
_HARDLY_WORSE_SHARE, _WORSE_SHARE, _MUCH_WORSE_SHARE = 0.03, 0.1, 0.3
_MAX_NOISE_FACTOR = 3.0  # times the sensor's noise; a larger error is not noise
_MAX_EXPECTED_FACTOR = 3.0  # times the error expected from the fit; a larger error is beyond its 99 % interval
_MAX_FITTED_FACTOR = 10.0  # times the error of the fit; motions that a fit does not cover have larger errors
_MATERIAL_SHARE = 0.25  # of a joint's torque; smaller errors do not matter, even if unexpected or unexplained
_MINOR_TORQUE_SHARE = 0.05  # of the largest torque of any joint; a joint with less does not make a result useless
_REFUTING_ERROR = 0.05  # of held-out torque; a wrong recording is predicted worse by other recordings
_MIN_NOISE_SHARE = 1e-6  # of the torque; a smaller value is not sensor noise


@dataclass(frozen=True)
class TorqueErrors:
    """Torque errors of one parameter set on one set of recordings.

    Attributes
    ----------
    relative_error : ``|error| / |torque|`` over all channels and samples
    rms_torque, rms_error : (c,), per channel of the equations [N m or N of forces]; zero without measurement
    rms_error_sliding, rms_error_resting : ndarray, shape (c,)
        Error while all drives that act on the channel slide, and error while one of them rests or hardly moves; NaN
        without samples of this kind. The resting error contains stiction, which is not part of the models.
    r_squared : ndarray, shape (c,)
        Explained share of the torque's variance about its mean; negative if the mean alone is better, NaN without
        variation.
    noise : (c,), standard deviation of the sensor's noise below the cutoff, the least possible error; NaN if unknown
    """

    relative_error: float
    rms_torque: Array
    rms_error: Array
    rms_error_sliding: Array
    rms_error_resting: Array
    samples: int
    recordings: tuple[str, ...]
    quantity: str
    unit: str
    r_squared: Array
    noise: Array

    @property
    def remedy_case(self) -> str:
        return {"torque": "", "wrench": "segments"}.get(self.quantity, "momentum")


@dataclass(frozen=True)
class PredictionError:
    """Root mean squares over all samples: measured quantity, and error of its prediction, by URDF and by result."""

    quantity: str
    unit: str
    measured: float
    prior: float
    calibrated: float


@dataclass(frozen=True)
class BandErrors:
    """Torque errors in one frequency band for all recordings.

    Attributes
    ----------
    cutoff_hz : cutoff of the low-pass on both motion and torque [Hz]
    """

    cutoff_hz: float
    calibrated: TorqueErrors
    prior: TorqueErrors


@dataclass(frozen=True)
class Validation:
    """Held-out errors of the estimate and of its prior, with findings.

    Attributes
    ----------
    prior_name : what the prior was made from
    findings : findings on the result, notices included
    blocks : number of blocks of the fitted data, each held out in turn; 0 if other recordings were held out
    """

    calibrated: TorqueErrors
    prior: TorqueErrors
    prior_name: str
    findings: tuple[Finding, ...] = ()
    blocks: int = 0

    @property
    def passed(self) -> bool:
        return all(finding.severity < Severity.REJECT for finding in self.findings)

    @property
    def comparison(self) -> str:
        """Both errors in one clause."""
        calibrated, prior = 100 * self.calibrated.relative_error, 100 * self.prior.relative_error
        error = f"{self.calibrated.quantity} error {calibrated:.2f} % against {prior:.2f} % of the {self.prior_name}"
        return f"{error} on blocks of the data fitted, each held out in turn" if self.blocks else f"held-out {error}"

    @property
    def message(self) -> str:
        """One line with the errors, and the reason of a rejection."""
        rejected = [finding for finding in self.findings if finding.severity >= Severity.REJECT]
        return f"rejected: {self.comparison}; {rejected[0]}" if rejected else f"accepted: {self.comparison}"


def torque_errors(equations: RobotModel | Equations, parameters: Array, recordings: Sequence[Samples]) -> TorqueErrors:
    """Errors of predicted torque over every usable sample.

    Slow samples, which the fit masks joint by joint, are included, since controllers also move slowly.

    Parameters
    ----------
    equations : equations, or a robot for its force equations
    """
    return errors_of_each(equations, [(parameters, samples) for samples in recordings])


def errors_of_each(
        equations: RobotModel | Equations, predictions: Sequence[tuple[Array, Samples]]) -> TorqueErrors:
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
            f"{', '.join(names)}: no usable sample or zero effort throughout; record motion with effort")
    return TorqueErrors(
        relative_error=float(np.linalg.norm(residual) / np.linalg.norm(tau)),
        rms_torque=np.nan_to_num(_rms(tau, every)), rms_error=np.nan_to_num(_rms(residual, every)),
        rms_error_sliding=_rms(residual, slides), rms_error_resting=_rms(residual, every & ~slides), samples=len(tau),
        recordings=tuple(names), quantity=equations.quantity[0], unit=equations.quantity[1],
        r_squared=_explained(tau, residual, every),
        noise=_noise(equations, [samples for _, samples in predictions], tau))


def _rms(values: Array, of: Mask) -> Array:
    """Root mean square ``(c,)`` of selected values ``(N, c)``; NaN without values."""
    counts = of.sum(axis=0)
    squares = np.sum(np.where(of, values, 0.0) ** 2, axis=0)
    return np.sqrt(np.divide(squares, counts, out=np.full(len(counts), np.nan), where=counts > 0))


def _explained(values: Array, residual: Array, of: Mask) -> Array:
    """Coefficient of determination ``(c,)`` of selected values ``(N, c)``; NaN without variation."""
    mean = np.sum(np.where(of, values, 0.0), axis=0) / np.maximum(of.sum(axis=0), 1)
    total = np.sum(np.where(of, values - mean, 0.0) ** 2, axis=0)
    left = np.sum(np.where(of, residual, 0.0) ** 2, axis=0)
    return 1.0 - np.divide(left, total, out=np.full(len(total), np.nan), where=total > 0)


class _Channel(NamedTuple):
    """Errors of one channel for the checks; ``prior`` and expected errors are NaN if they are not given."""

    name: str
    error: float
    prior: float
    noise: float
    torque: float
    variation: float
    minor: bool
    fitted_error: float  # over the samples that a fit would use
    expected: float
    errors: TorqueErrors  # of all channels
    prior_name: str


def check_errors(
        equations: Equations, calibrated: TorqueErrors, prior: TorqueErrors | None, scale: TorqueScale,
        expected: tuple[Array, Array] | None = None) -> tuple[Finding, ...]:
    """Findings on the error of all channels together, then on each channel.

    Parameters
    ----------
    prior : errors of the prior of ``equations.model``; None if the parameters come from a URDF
    scale : size of each channel's torque, with which errors are compared
    expected : measured error ``(c,)`` over the samples that a fit would use, and the error ``(c,)`` predicted from the
        fit's residuals and covariance
    """
    nothing = np.full(equations.count, np.nan)
    fitted_error, foreseen = (nothing, nothing) if expected is None else expected
    given, noise = nothing if prior is None else prior.rms_error, np.nan_to_num(calibrated.noise)
    minor = scale.torque <= _MINOR_TORQUE_SHARE * scale.torque.max()
    columns = (calibrated.rms_error, given, noise, scale.torque, scale.variation, minor, fitted_error, foreseen)
    rows = zip(equations.channels, *columns, strict=True)
    shared = calibrated, equations.model.prior_name
    channels = [channel for row in rows if (channel := _Channel._make((*row, *shared))).torque > 0]
    checks = (_above_noise, _worse_than_urdf, _does_not_generalise)
    by_channel = (finding for check in checks for channel in channels for finding in check(channel))
    return (*_overall(calibrated, prior, equations.model.prior_name), *by_channel)


def _overall(calibrated: TorqueErrors, prior: TorqueErrors | None, prior_name: str) -> Iterator[Finding]:
    error, quantity, case = calibrated.relative_error, calibrated.quantity, calibrated.remedy_case
    if not error < _USELESS_ERROR:
        evidence = f"the {quantity} error is {100 * error:.2f} % of the {quantity} itself, worse than predicting zero"
        yield Finding.with_remedy("worse_than_nothing", Severity.REJECT, evidence, case=case)
    noise = _MAX_NOISE_FACTOR * np.linalg.norm(np.nan_to_num(calibrated.noise))
    if prior is None and _WORSE_SHARE < error < _USELESS_ERROR and np.linalg.norm(calibrated.rms_error) > noise:
        evidence = f"the {quantity} error of the URDF is {100 * error:.2f} % over all channels"
        yield Finding.with_remedy("above_noise", Severity.CARE, evidence, case=case or "urdf")
    if prior is not None and not error < prior.relative_error:
        added = float(np.sqrt(error**2 - prior.relative_error**2))
        severity = Severity.CARE if added <= _HARDLY_WORSE_SHARE else Severity.REJECT
        evidence = (
            f"the {quantity} error over all channels is {100 * error:.2f} % against {100 * prior.relative_error:.2f} %"
            f" of the {prior_name}")
        yield Finding.with_remedy("worse_than_urdf", severity, evidence, case="all_joints")


def _above_noise(channel: _Channel) -> Iterator[Finding]:
    """Report a channel whose torque neither the model nor noise explains."""
    error, noise, variation = channel.error, channel.noise, channel.variation
    if error <= max(_UNEXPLAINED_ERROR * variation, _MATERIAL_SHARE * channel.torque, _MAX_NOISE_FACTOR * noise):
        return
    noisy = f"; the error is {error / noise:.0f} times the effort noise" if noise > 0 else ""
    evidence = f"{channel.name}: error {error:.3g}, while the {channel.errors.quantity} varies by {variation:.3g}"
    evidence += f" {channel.errors.unit} (RMS), with a largest RMS of {channel.torque:.3g}{noisy}"
    severity = Severity.REJECT if error > _USELESS_ERROR * variation and not channel.minor else Severity.CARE
    yield Finding.with_remedy("above_noise", severity, evidence, channel.name, case=channel.errors.remedy_case)


def _worse_than_urdf(channel: _Channel) -> Iterator[Finding]:
    """Report a channel whose error is larger than the error of the prior, by default of the URDF as given."""
    error, prior = channel.error, channel.prior
    added = float(np.sqrt(max(error**2 - prior**2, 0.0))) / channel.torque
    if not added > _HARDLY_WORSE_SHARE or error <= _MAX_NOISE_FACTOR * channel.noise:
        return
    grave = added > _MUCH_WORSE_SHARE and not channel.minor
    severity = Severity.REJECT if grave else Severity.CARE if added > _WORSE_SHARE else Severity.NOTICE
    evidence = f"{channel.name}: error {error:.3g} against {prior:.3g} of the {channel.prior_name}"
    evidence += f", with a largest RMS {channel.errors.quantity} of {channel.torque:.3g} {channel.errors.unit}"
    yield Finding.with_remedy("worse_than_urdf", severity, evidence, channel.name, case=channel.errors.remedy_case)


def _does_not_generalise(channel: _Channel) -> Iterator[Finding]:
    """Report a channel whose error is much larger than the fit and its uncertainty predict."""
    error, expected = channel.fitted_error, channel.expected
    if error > _MAX_EXPECTED_FACTOR * expected and error > _MATERIAL_SHARE * channel.torque:
        evidence = f"{channel.name}: error {error:.3g} on held-out data, {error / expected:.1f} times the error"
        evidence += " expected from the fit"
        yield Finding.with_remedy("does_not_generalise", Severity.CARE, evidence, channel.name)


def validate(estimate: Estimate, recordings: Sequence[Samples]) -> Validation:
    """Validate an estimate on recordings that were not fitted, with the estimated delay of effort removed."""
    equations, recordings = estimate.equations, [without_delay(samples, estimate.delay) for samples in recordings]
    calibrated = torque_errors(equations, estimate.parameters, recordings)
    prior = torque_errors(equations, estimate.prior, recordings)
    scale = TorqueScale.from_recordings(
        equations, (estimate.prior, estimate.parameters), recordings, estimate.information)
    information = compress(equations, recordings)
    squares = [c.expected_square(estimate.covariance) / max(c.count, 1) for c in information.channels]
    expected = np.sqrt(estimate.residual_deviation**2 + np.array(squares))
    findings = check_errors(
        equations, calibrated, prior, scale, (information.rms_error(estimate.parameters), expected))
    error, fitted = information.relative_error(estimate.parameters), estimate.train_relative_error
    if max(_HARDLY_WORSE_SHARE, _MAX_FITTED_FACTOR * fitted) < error < np.inf:
        evidence = f"error {100 * error:.2f} % on held-out data, {100 * fitted:.2f} % on fitted data, over all channels"
        findings += (Finding.with_remedy("does_not_generalise", Severity.CARE, evidence),)
    return Validation(calibrated, prior, equations.model.prior_name, (*check_solution(estimate), *findings))


def without_refuted(findings: Sequence[Finding], tested: Validation | None) -> list[Finding]:
    """Limit the severity of causes that only held-out recordings show, if the result predicts their torque well."""
    if tested is None or tested.blocks or tested.calibrated.relative_error > _REFUTING_ERROR:
        return list(findings)
    held_out, shown = tested.calibrated.recordings, f"; yet the result predicts these recordings: {tested.comparison}"
    fitted = {finding.cause for finding in findings if finding.recording not in held_out}
    causes = (causes_of_symptom("effort_sign") | {"position_offset"}) - fitted
    return [
        replace(finding, severity=min(finding.severity, Severity.CARE), evidence=finding.evidence + shown)
        if finding.recording in held_out and finding.cause in causes else finding for finding in findings]


def _noise(equations: Equations, recordings: Sequence[Samples], measured: Array) -> Array:
    """Largest noise ``(c,)`` of the measurement below the cutoff among the recordings.

    NaN if the noise is unknown, or if a driver's low-pass removes it from the band in which noise is measured.
    """
    noise = np.zeros(equations.count)
    for samples in recordings:
        if samples.effort_noise is not None and len(noise[equations.joint_channels]) == len(samples.effort_noise):
            noise[equations.joint_channels] = np.maximum(noise[equations.joint_channels], samples.effort_noise)
    return np.where(noise > _MIN_NOISE_SHARE * np.sqrt(np.mean(measured**2, axis=0)), noise, np.nan)
