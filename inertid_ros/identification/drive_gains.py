"""Gains of drives from recordings with and without known loads ([Gautier2014]_).

A drive reports its torque up to a gain: gear ratio times torque constant, known to some per cent or unknown. Without a
known load, the data determine gains and parameters only up to a common factor; a known load fixes the factor. The
model is ``e = A_j (x + x_load) / g_j`` per joint ``j`` and recording, with the load's parameters ``x_load`` in the
columns of the link that carries the load. Only the efforts ``e`` are noisy, so the estimate of ``g_j`` is unbiased; a
regression on measured efforts would be biased. Gauss-Newton steps solve for ``x`` and all ``log g_j`` at once, from R
factors of the recordings of each load.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import NORMAL_95, Estimate
from inertid_ros.identification.assessment.posterior import INTERVAL_COVERAGE
from inertid_ros.identification.information.information import Information, compress, merged
from inertid_ros.identification.information.residuals import effective_fraction
from inertid_ros.identification.solvers.coordinates import (
    TYPICAL_PRIOR_SPREAD,
    prior_coordinates,
    prior_covariance_root,
)
from inertid_ros.regressors.equations import Equations
from inertid_ros.regressors.force_equations import load_torque

_IDENTIFIED_GAIN_SHARE = 0.9  # a gain counts as identified if loads remove this share of its prior variance
_BLOCKS_PER_RECORDING, _MAX_GAIN_BLOCKS = 16, 64  # jackknife blocks per recording, and in total
# Prior standard deviation of a gain's logarithm about the mean over all joints: accuracy of data sheets and drivers.
# Gains that loads do not determine stay near the mean. The mean itself is free: efforts may be in ampere or per mille.
TYPICAL_GAIN_ERROR = 0.3
_UNKNOWN_FACTOR_DEVIATION = 7.0  # standard deviation of the common factor's logarithm: three orders of magnitude
# Factor on the typical prior deviation of bodies, friction and rotors, so that priors do not set the scale of gains.
_FLAT_PRIOR_FACTOR = 1e3
_MAX_GAIN_STEPS, _GAIN_TOLERANCE = 100, 1e-6
_MAX_LOG_GAIN_STEP = 0.7  # step of a gain's logarithm: at most half or double the gain
_MIN_JACKKNIFE_BLOCKS = 5
_FAR_CENTRE_M, _FAR_CENTRE_DEVIATIONS = 0.03, 4.0  # a centre of mass farther off than both was declared wrongly
_LOAD_SIZE_M = 1.0  # m; prior deviation of a load's centre of mass, and radius of gyration
_CENTRE_STEPS, _CENTRE_TOLERANCE_M = 20, 1e-3  # m
_UNKNOWNS_PER_LOAD = BODY_PARAMETERS - 1  # first moments and inertia


@dataclass(frozen=True)
class DriveGains:
    """Factor from reported to true effort of every joint.

    Attributes
    ----------
    values : (n,), gains, which multiply efforts already scaled by ``robot.effort_scale``
    covariance : (n, n), covariance of the logarithms of the gains
    identified : per joint, whether the loads determine the gain; other gains stay near the mean of all gains
    findings : ``load_elsewhere`` if a load does not act as declared
    """

    joint_names: tuple[str, ...]
    values: Array
    covariance: Array
    identified: tuple[bool, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def relative_deviation(self) -> Array:
        """``(n,)`` standard deviation as a share of the gain."""
        return np.asarray(np.sqrt(np.diagonal(self.covariance)))

    def widened(self, estimate: Estimate, efforts: Array) -> Estimate:
        """Add the uncertainty of the gains to the covariance of an estimate that was fitted with them.

        Parameters
        ----------
        efforts : ndarray, shape (n, p)
            Products of the columns of each joint's equations with its scaled efforts, see :func:`effort_products`.
        """
        fraction = estimate.effective_counts / np.maximum(estimate.information.counts, 1)
        elasticity = 0.0 if estimate.elasticity is None else estimate.elasticity.covariance
        inverse_hessian = estimate.covariance - elasticity
        change = inverse_hessian @ (efforts * (fraction / estimate.residual_deviation**2)[:, None]).T
        added = change @ self.covariance @ change.T
        interval, further = estimate.bounded_interval, NORMAL_95 * np.sqrt(np.diagonal(added))
        if interval is not None:  # each side by the root of the sum of squares, down to zero
            centre = estimate.parameters
            lower = np.maximum(centre - np.hypot(centre - interval[:, 0], further), 0.0)
            interval = np.stack([lower, centre + np.hypot(interval[:, 1] - centre, further)], axis=1)
        return replace(estimate, covariance=estimate.covariance + added, bounded_interval=interval)


def drive_gains(equations: Equations, recordings: Sequence[Samples], loads: Sequence[Array]) -> DriveGains:
    """Estimate the gain of every joint's drive.

    Parameters
    ----------
    equations : equations of joint torques on a fixed base
    recordings : recordings with the torque of their loads subtracted
    loads : sequence of ndarray, shape (nb, 10)
        Inertial parameters of the load on every body, per recording.

    Raises
    ------
    IdentificationError
        All recordings have equal loads, or the equations are not of joint torques on a fixed base without contacts.
    """
    model = equations.model
    if equations.equation_type != "force" or model.free or model.contacts:
        raise IdentificationError(
            "identify.drive_gains: works only for joint torques on a fixed base without contacts; turn it off")
    if len({load.tobytes() for load in loads}) < 2:
        raise IdentificationError(
            "identify.drive_gains: all recordings have equal loads or are unloaded, so gains are determined up to a"
            " common factor; add a recording with a known load (robot.loads)")
    reported = _with_loads(equations, recordings, loads)
    padded = [np.append(load, np.zeros(model.layout.size - load.size)) for load in loads]
    blocks = [
        (load, compress(equations, [block]))
        for samples, load in zip(reported, padded, strict=True)
        for block in samples.blocks(max(min(_BLOCKS_PER_RECORDING, _MAX_GAIN_BLOCKS // len(reported)), 1))
        if block.mask.any()]
    # Gains by least squares, and their covariance under independent noise, widened to the scatter of the jackknife.
    fit = GainFit.from_blocks(equations, blocks)
    residuals = [
        samples.tau - fit.inverse * equations.predict(fit.parameters + load, samples)
        for samples, load in zip(reported, padded, strict=True)]
    fraction = effective_fraction(residuals, [samples.mask for samples in reported])
    covariance = fit.log_covariance(fraction)
    identified = 1 - np.diagonal(covariance) / TYPICAL_GAIN_ERROR**2 >= _IDENTIFIED_GAIN_SHARE
    wider = np.maximum(fit.scatter(blocks) / np.sqrt(np.diagonal(covariance)), 1.0)
    findings = _misplaced_loads(fit, fraction, float(wider.max()))
    covariance *= np.outer(wider, wider)
    return DriveGains(model.joint_names, 1 / fit.inverse, covariance, tuple(map(bool, identified)), findings)


def effort_products(equations: Equations, recordings: Sequence[Samples], loads: Sequence[Array]) -> Array:
    """``(n, p)`` products ``A_j^T g_j e_j``, from recordings with gains applied and torques of loads subtracted."""
    products = np.zeros((equations.count, equations.model.layout.size))
    for joint, channel in enumerate(compress(equations, _with_loads(equations, recordings, loads)).channels):
        products[joint, channel.columns] += channel.r_factor[:, :-1].T @ channel.r_factor[:, -1]
    return products


def _with_loads(equations: Equations, recordings: Sequence[Samples], loads: Sequence[Array]) -> list[Samples]:
    """Add the torque of the loads back to the recordings."""
    pairs = zip(recordings, loads, strict=True)
    return [replace(samples, tau=samples.tau + load_torque(equations.model, load, samples)) for samples, load in pairs]


@dataclass(frozen=True)
class GainFit:
    """Joint least-squares fit of parameters and gains to the reported efforts ([Gautier2014]_).

    Attributes
    ----------
    blocks : per load, its parameters ``(p,)``, and the information of its samples with efforts as reported
    root : (p, p), square root of the nearly flat prior covariance of the parameters
    inverse : (n,), 1 / g
    """

    equations: Equations
    blocks: list[tuple[Array, Information]]
    root: Array
    parameters: Array
    inverse: Array

    @classmethod
    def from_blocks(cls, equations: Equations, blocks: Sequence[tuple[Array, Information]]) -> "GainFit":
        """Fit blocks of samples, each with its load ``(p,)``, starting at gains of one."""
        model = equations.model
        coordinates = prior_coordinates(model, merged(information for _, information in blocks))
        root = _FLAT_PRIOR_FACTOR * prior_covariance_root(coordinates, TYPICAL_PRIOR_SPREAD)
        return cls(equations, _by_load(blocks), root, model.prior, np.ones(model.joints)).converged()

    def converged(self) -> "GainFit":
        """Iterate Gauss-Newton steps to the minimum."""
        fit, root, weights = self, self.root, self.weights(1.0)
        for _ in range(_MAX_GAIN_STEPS):
            J, r = fit.system(weights)
            step = np.linalg.lstsq(J, -r)[0]
            size = len(root)
            inverse = fit.inverse * np.exp(np.clip(step[size:], -_MAX_LOG_GAIN_STEP, _MAX_LOG_GAIN_STEP))
            change = np.abs(np.log(inverse / fit.inverse)).max()
            fit = replace(fit, parameters=fit.parameters + root @ step[:size], inverse=inverse)
            weights = fit.weights(1.0)
            if change < _GAIN_TOLERANCE:
                return fit
        raise IdentificationError(
            "identify.drive_gains: found no gains that explain the recordings; check the loads and the efforts")

    def scatter(self, blocks: Sequence[tuple[Array, Information]]) -> Array:
        """Relative standard deviation ``(n,)`` of the gains by the jackknife over blocks of samples.

        The jackknife includes model errors, which the assumption of independent noise hides. Blocks are few and carry
        unequal information, so the deviation is enlarged: its normal 95 % interval becomes as wide as the interval of
        Student's t with the degrees of freedom of the blocks' scatter ([Cameron2015]_ sec. VI).
        """
        count = len(blocks)
        if count < _MIN_JACKKNIFE_BLOCKS:
            return np.zeros_like(self.inverse)
        without = [
            replace(self, blocks=_by_load([*blocks[:index], *blocks[index + 1 :]])).converged().inverse
            for index in range(count)]
        squares = (np.log(without) - np.log(without).mean(axis=0)) ** 2
        freedom = 3 * squares.sum(axis=0) ** 2 / np.maximum(np.sum(squares**2, axis=0), 1e-300)
        wider = scipy.special.stdtrit(np.clip(freedom, 1.0, count - 1), 0.5 + 0.5 * INTERVAL_COVERAGE) / NORMAL_95
        return np.asarray(wider * np.sqrt((count - 1) / count * squares.sum(axis=0)))

    def weights(self, fraction: Array | float) -> Array:
        """Residual weights ``(n,)`` for a given share ``(n,)`` of independent samples."""
        squares = sum(np.array([np.sum(r**2) for _, r in self.channels(block)]) for block in self.blocks)
        counts = np.maximum(sum(information.counts for _, information in self.blocks), 1)
        return np.asarray(np.sqrt(fraction) / np.maximum(np.sqrt(squares / counts), 1e-9))

    def system(self, weights: Array) -> tuple[Array, Array]:
        """Jacobian and residuals of data and prior, with respect to parameters in units of the root, and ``-log g``."""
        size, joints = len(self.root), len(self.inverse)
        rows, residuals = [], []
        for block in self.blocks:
            for joint, (jacobian, residual) in enumerate(self.channels(block)):
                row = np.zeros((len(residual), size + joints))
                row[:, :size] = self.inverse[joint] * jacobian @ self.root
                row[:, size + joint] = self.inverse[joint] * jacobian @ (self.parameters + block[0])
                rows.append(weights[joint] * row)
                residuals.append(weights[joint] * residual)
        common = np.full((joints, joints), 1 / joints)
        of_gains = (np.eye(joints) - common) / TYPICAL_GAIN_ERROR + common / _UNKNOWN_FACTOR_DEVIATION
        prior = np.eye(size + joints)
        prior[size:, size:] = of_gains
        away = np.linalg.solve(self.root, self.parameters - self.equations.model.prior)
        residuals += [away, of_gains @ np.log(self.inverse)]
        return np.vstack([*rows, prior]), np.concatenate(residuals)

    def channels(self, block: tuple[Array, Information]) -> list[tuple[Array, Array]]:
        """Rows ``(k, p)`` in the layout's columns, and residuals ``(k,)``, of every joint."""
        load, information = block
        pairs = []
        for channel, inverse in zip(information.channels, self.inverse, strict=True):
            columns = np.zeros((len(channel.r_factor), len(self.root)))
            columns[:, channel.columns] = channel.r_factor[:, :-1]
            pairs.append((columns, inverse * columns @ (self.parameters + load) - channel.r_factor[:, -1]))
        return pairs

    def log_covariance(self, fraction: Array) -> Array:
        """``(n, n)`` covariance of the logarithms of the gains, for a given share ``(n,)`` of independent samples."""
        J, _ = self.system(self.weights(fraction))
        size = len(self.root)
        return np.asarray(np.linalg.inv(J.T @ J)[size:, size:], dtype=float)


def _by_load(blocks: Sequence[tuple[Array, Information]]) -> list[tuple[Array, Information]]:
    """Merge the information of blocks with equal loads."""
    loads = {load.tobytes(): load for load, _ in blocks}
    return [
        (load, merged(information for of_block, information in blocks if of_block.tobytes() == key))
        for key, load in loads.items()]


def _misplaced_loads(fit: GainFit, fraction: Array, wider: float) -> tuple[Finding, ...]:
    """Report loads on a single body that do not act at their declared position.

    The mass of a load sets the scale of all gains. A wrongly declared centre of mass makes the gains wrong, too, and
    their intervals do not include this error. So this check takes only the masses as given, estimates first moments
    and inertias of the loads together with the gains, and compares the centres of mass with the declared centres.

    Parameters
    ----------
    fit : fit with the loads as declared
    fraction : (n,), independent share of the samples
    wider : factor by which deviations exceed deviations under independent noise
    """
    declared = [load for load, _ in fit.blocks if len(_starts(load)) == 1]
    if not declared:
        return ()
    numbers = {load.tobytes(): number for number, load in enumerate(declared)}
    of_blocks = [numbers.get(load.tobytes()) for load, _ in fit.blocks]
    starts = [_starts(load)[0] for load in declared]
    masses = np.array([load[start] for load, start in zip(declared, starts, strict=True)])
    moved = [load.copy() for load in declared]
    for _ in range(_CENTRE_STEPS):
        blocks = [
            (load if number is None else moved[number], information)
            for number, (load, information) in zip(of_blocks, fit.blocks, strict=True)]
        try:
            freed = replace(fit, blocks=blocks).converged()
        except IdentificationError:
            return ()  # masses alone do not determine the gains here, so positions of the loads stay unknown
        change, covariance = _centre_step(freed, fraction, moved, starts)
        moved = [load.copy() for load in moved]
        for load, start, correction in zip(moved, starts, change, strict=True):
            load[start + 1 : start + BODY_PARAMETERS] += correction
        if np.abs(change[:, :3] / masses[:, None]).max() < _CENTRE_TOLERANCE_M:
            break
    findings = []
    for number, (start, mass) in enumerate(zip(starts, masses, strict=True)):
        moments = slice(start + 1, start + 4)
        of_load = slice(_UNKNOWNS_PER_LOAD * number, _UNKNOWNS_PER_LOAD * number + 3)
        deviation = wider * float(np.sqrt(np.linalg.eigvalsh(covariance[of_load, of_load])[-1])) / mass
        centre = moved[number][moments] / mass
        distance = float(np.linalg.norm(centre - declared[number][moments] / mass))
        if distance < max(_FAR_CENTRE_M, _FAR_CENTRE_DEVIATIONS * deviation):
            continue
        link = fit.equations.model.link_names[start // BODY_PARAMETERS]
        place = ", ".join(f"{value:.3g}" for value in centre)
        evidence = (
            f"the load of {mass:.4g} kg acts as if its centre of mass were {distance:.2g} m away from the declared"
            f" position, at ({place}) m in {link}")
        findings.append(Finding.with_remedy("load_elsewhere", Severity.CARE, evidence, link))
    return tuple(findings)


def _centre_step(fit: GainFit, fraction: Array, loads: Sequence[Array], starts: Sequence[int]) -> tuple[Array, Array]:
    """Best change ``(l, 9)`` of each load's first moments and inertia, and covariance ``(9 l, 9 l)`` of all changes."""
    weights = fit.weights(fraction)
    J, residuals = fit.system(weights)
    count = _UNKNOWNS_PER_LOAD * len(loads)
    K, row = np.zeros((len(J), count)), 0
    for block in fit.blocks:
        for weight, inverse, (columns, _) in zip(weights, fit.inverse, fit.channels(block), strict=True):
            for number, (load, start) in enumerate(zip(loads, starts, strict=True)):
                if np.array_equal(block[0], load):
                    columns_of_load = slice(_UNKNOWNS_PER_LOAD * number, _UNKNOWNS_PER_LOAD * (number + 1))
                    unknown = columns[:, start + 1 : start + BODY_PARAMETERS]
                    K[row : row + len(columns), columns_of_load] = weight * inverse * unknown
            row += len(columns)
    pairs = list(zip(loads, starts, strict=True))
    sizes = np.repeat([_LOAD_SIZE_M, _LOAD_SIZE_M**2], [3, 6])
    deviations = np.concatenate([load[start] * sizes for load, start in pairs])
    values = np.concatenate([load[start + 1 : start + BODY_PARAMETERS] for load, start in pairs])
    whole = np.block([[J, K], [np.zeros((count, J.shape[1])), np.diag(1 / deviations)]])
    change = np.linalg.lstsq(whole, -np.concatenate([residuals, values / deviations]))[0][-count:]
    covariance = np.linalg.inv(whole.T @ whole)[-count:, -count:]
    return np.asarray(change, dtype=float).reshape(len(loads), _UNKNOWNS_PER_LOAD), np.asarray(covariance, dtype=float)


def _starts(load: Array) -> list[int]:
    """Column of the mass of every loaded body."""
    return [BODY_PARAMETERS * int(body) for body in np.unique(np.flatnonzero(load) // BODY_PARAMETERS)]
