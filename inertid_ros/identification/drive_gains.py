"""Gains of drives from recordings with and without known loads ([Gautier2014]_).

A drive reports its torque up to a gain: gear ratio times torque constant, known to a few per cent or unknown. Without a
known load, the data determine gains and parameters only up to a common factor; a known load fixes the factor. The
model is ``e = A_j (x + x_load) / g_j`` per joint ``j`` and recording, with the load's parameters ``x_load`` in the
columns of the link that carries the load. Only the efforts ``e`` are noisy, so the estimate of ``g_j`` is unbiased; a
regression on measured efforts would be biased. Gauss-Newton steps solve for ``x`` and all ``log g_j`` at once, from R
factors of the recordings of each load.

Efforts that follow from position commands have two gains: ``e + r_j d + t s = A_j (x + x_load) / g_j``. ``d`` is the
part of the efforts by the velocity gain, and ``r_j`` the error of this gain beyond the error of the position gain;
``s`` is the derivative by the delay, and ``t`` the error of the delay. Without a load, declared gains set the scale.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import NORMAL_95, Estimate
from inertid_ros.identification.assessment.posterior import INTERVAL_COVERAGE
from inertid_ros.identification.information.information import Information, compress
from inertid_ros.identification.information.residuals import effective_fraction
from inertid_ros.identification.solvers import coordinates as priors
from inertid_ros.regressors.equations import Equations, dense_equations, load_torque
from inertid_ros.robot.kinematics import batches
from inertid_ros.robot.model import RobotModel

_IDENTIFIED_GAIN_SHARE = 0.9  # a gain counts as identified if loads remove this share of its prior variance
_BLOCKS_PER_RECORDING, _MAX_GAIN_BLOCKS = 16, 64  # jackknife blocks per recording, and in total
# Prior standard deviation of a gain's logarithm about the mean over all joints: accuracy of data sheets and drivers.
# Gains that loads do not determine stay near the mean. The mean itself is free: efforts may be in ampere or per mille.
TYPICAL_GAIN_ERROR = 0.3
_TYPICAL_DELAY_ERROR_S = 0.01  # of a delay that was estimated with wrong gains
_UNKNOWN_FACTOR_DEVIATION = 7.0  # standard deviation of the common factor's logarithm: three orders of magnitude
# Factor on the typical prior deviation of bodies, friction and rotors, so that priors do not set the scale of gains.
_FLAT_PRIOR_FACTOR = 1e3
_MAX_GAIN_STEPS, _GAIN_TOLERANCE = 100, 1e-6
_MAX_LOG_GAIN_STEP = 0.7  # step of a gain's logarithm: at most half or double the gain
_MIN_JACKKNIFE_BLOCKS = 5
_FAR_CENTRE_M, _FAR_CENTRE_DEVIATIONS = 0.03, 4.0  # a centre of mass farther off than both was declared wrongly
_LOAD_SIZE_M = 1.0  # m; prior deviation of a load's centre of mass, and radius of gyration
_FREE_OF_LOAD = BODY_PARAMETERS - 1  # first moments and inertia


@dataclass(frozen=True)
class DriveGains:
    """Factor from reported to true effort of every joint.

    Attributes
    ----------
    values : (n,), gains, which multiply efforts already scaled by ``robot.effort_scale``
    covariance : (n, n), covariance of the logarithms of the gains; (2 n, 2 n) with the ``damping``
    identified : per joint, whether the loads determine the gain; other gains stay near the mean of all gains
    findings : ``load_elsewhere`` if a load does not act as declared
    damping : (n,), factor of the velocity gain of commands beyond ``values``; empty if efforts are measured
    shift : error of the delay of the commands [s]
    """

    joint_names: tuple[str, ...]
    values: Array
    covariance: Array
    identified: tuple[bool, ...]
    findings: tuple[Finding, ...] = ()
    damping: Array = field(default_factory=lambda: np.zeros(0))
    shift: float = 0.0

    @property
    def relative_deviation(self) -> Array:
        """``(n,)`` standard deviation as a share of the gain."""
        return np.asarray(np.sqrt(np.diagonal(self.covariance)[: len(self.values)]))

    def widened(self, estimate: Estimate, efforts: Array) -> Estimate:
        """Add the uncertainty of the gains to the covariance of an estimate that was fitted with them.

        Parameters
        ----------
        efforts : ndarray, shape (n, p)
            Products of the columns of each joint's equations with its scaled efforts, see :func:`effort_products`;
            (2 n, p) with the products of the velocity gain's part.
        """
        fraction = estimate.effective_counts / np.maximum(estimate.information.counts, 1)
        weights = np.resize(fraction / estimate.residual_deviation**2, len(efforts))
        unmodelled = 0.0 if estimate.unmodelled is None else estimate.unmodelled.covariance
        inverse_hessian = estimate.covariance - unmodelled
        change = inverse_hessian @ (efforts * weights[:, None]).T
        if self.damping.size:  # without a load, a common error of all gains scales all parameters
            joints = len(self.values)
            change[:, :joints] += (estimate.parameters - change[:, :joints].sum(axis=1))[:, None] / joints
        added = change @ self.covariance @ change.T
        interval, further = estimate.bounded_interval, NORMAL_95 * np.sqrt(np.diagonal(added))
        if interval is not None:  # each side by the root of the sum of squares, down to zero
            centre = estimate.parameters
            lower = np.maximum(centre - np.hypot(centre - interval[:, 0], further), 0.0)
            interval = np.stack([lower, centre + np.hypot(interval[:, 1] - centre, further)], axis=1)
        return replace(estimate, covariance=estimate.covariance + added, bounded_interval=interval)


def drive_gains(equations: Equations, recordings: Sequence[Samples], loads: Sequence[Array],
        commanded: Sequence[Array] = ()) -> DriveGains:
    """Estimate the gain of every joint's drive.

    Parameters
    ----------
    equations : equations of joint torques on a fixed base
    recordings : recordings with the torque of their loads subtracted
    loads : sequence of ndarray, shape (nb, 10)
        Inertial parameters of the load on every body, per recording.
    commanded : sequence of ndarray, shape (N, n, 2)
        Part of the efforts that follows from the velocity gains of commands, and derivative of the efforts with respect
        to the delay of the commands, per recording; empty if efforts are measured.

    Raises
    ------
    IdentificationError
        All recordings have equal loads, or the equations are not of joint torques on a fixed base without contacts.
    """
    model = equations.model
    if equations.equation_type != "force" or model.free or model.contacts:
        raise IdentificationError(
            "identify.drive_gains: works only for joint torques on a fixed base without contacts; turn it off")
    if not commanded and len({load.tobytes() for load in loads}) < 2:
        raise IdentificationError(
            "identify.drive_gains: all recordings have equal loads or are unloaded, so gains are determined up to a"
            " common factor; add a recording with a known load (robot.loads)")
    reported = _with_loads(equations, recordings, loads)
    padded = [np.append(load, np.zeros(model.layout.size - load.size)) for load in loads]
    count = max(min(_BLOCKS_PER_RECORDING, _MAX_GAIN_BLOCKS // len(reported)), 1)
    blocks = [
        _load_equations(equations, load, samples.select(rows), [part[rows] for part in commanded[index : index + 1]])
        for index, (samples, load) in enumerate(zip(reported, padded, strict=True))
        for rows in samples.block_rows(count)
        if samples.mask[rows].any()]
    # Gains by least squares, and their covariance under independent noise, widened to the scatter of the jackknife.
    fit = GainFit.from_blocks(equations, blocks, compress(equations, reported))
    residuals = [
        samples.tau - fit.inverse * equations.predict(fit.parameters + load, samples)
        for samples, load in zip(reported, padded, strict=True)]
    for residual, parts in zip(residuals, commanded, strict=False):
        residual += fit.ratio[:, 0] * parts[..., 0] + fit.shift * parts[..., 1]
    fraction = effective_fraction(residuals, [samples.mask for samples in reported])
    of_gains = slice(len(fit.root), len(fit.root) + model.joints + fit.ratio.size)
    covariance = fit.covariance(fraction)[of_gains, of_gains]
    identified = 1 - np.diagonal(covariance)[: model.joints] / TYPICAL_GAIN_ERROR**2 >= _IDENTIFIED_GAIN_SHARE
    wider = np.maximum(fit.scatter(blocks) / np.sqrt(np.diagonal(covariance)[: model.joints]), 1.0)
    findings = _misplaced_loads(fit, model, fraction, float(wider.max()))
    # The unknowns are -log g and the ratios.
    scale = np.concatenate([-wider, np.tile(wider, fit.ratio.shape[1])])
    covariance = covariance * np.outer(scale, scale)
    return DriveGains(model.joint_names, 1 / fit.inverse, covariance, tuple(map(bool, identified)), findings,
        1 + fit.ratio.ravel(), fit.shift)


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


class LoadEquations(NamedTuple):
    """Equations of samples with one load ``(p,)``: rows ``[A | e]`` or ``[A | d | s | e]`` and samples per joint."""

    load: Array
    rows: list[Array]
    counts: np.ndarray


@dataclass(frozen=True)
class GainFit:
    """Joint least-squares fit of parameters and gains to the reported efforts ([Gautier2014]_).

    Attributes
    ----------
    prior, root : (p,) and (p, p), prior of the parameters and square root of its nearly flat covariance
    inverse : (n,), 1 / g
    ratio : (n, 1), r; (n, 0) if efforts are measured
    shift : t
    """

    blocks: list[LoadEquations]
    prior: Array
    root: Array
    parameters: Array
    inverse: Array
    ratio: Array
    shift: float = 0.0

    @classmethod
    def from_blocks(cls, equations: Equations, blocks: Sequence[LoadEquations], information: Information) -> "GainFit":
        """Fit blocks of samples, starting at gains of one; the information of all samples scales the prior."""
        model = equations.model
        coordinates = priors.prior_coordinates(model, information)
        root = _FLAT_PRIOR_FACTOR * priors.prior_covariance_root(coordinates, priors.TYPICAL_PRIOR_SPREAD)
        ratio = np.zeros((model.joints, int(blocks[0].rows[0].shape[1] > len(root) + 1)))
        return cls(_by_load(blocks), model.prior, root, model.prior, np.ones(model.joints), ratio).converged()

    def converged(self) -> "GainFit":
        """Iterate Gauss-Newton steps to the minimum."""
        fit, root, weights = self, self.root, self.weights(1.0)
        for _ in range(_MAX_GAIN_STEPS):
            J, r = fit.system(weights)
            step = np.linalg.lstsq(J, -r)[0]
            joints = len(fit.inverse)
            of_gains, of_ratios, of_shift = np.split(step[len(root) :], [joints, joints + fit.ratio.size])
            inverse = fit.inverse * np.exp(np.clip(of_gains, -_MAX_LOG_GAIN_STEP, _MAX_LOG_GAIN_STEP))
            change = max(np.abs(np.log(inverse / fit.inverse)).max(), np.abs(of_ratios).max(initial=0.0))
            fit = replace(fit, parameters=fit.parameters + root @ step[: len(root)], inverse=inverse,
                ratio=fit.ratio + of_ratios.reshape(fit.ratio.shape), shift=fit.shift + float(of_shift.sum()))
            weights = fit.weights(1.0)
            if change < _GAIN_TOLERANCE:
                return fit
        raise IdentificationError(
            "identify.drive_gains: found no gains that explain the recordings; check the loads and the efforts")

    def scatter(self, blocks: Sequence[LoadEquations]) -> Array:
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
        squares = sum(np.array([np.sum(r**2) for r in self.residuals(block)]) for block in self.blocks)
        counts = np.maximum(sum(block.counts for block in self.blocks), 1)
        return np.asarray(np.sqrt(fraction) / np.maximum(np.sqrt(squares / counts), 1e-9))

    def residuals(self, block: LoadEquations) -> list[Array]:
        """Residuals ``(k,)`` of every joint."""
        values, size = self.parameters + block.load, len(self.root)
        return [
            g * joint[:, :size] @ values - joint[:, size:] @ effort
            for joint, g, effort in zip(block.rows, self.inverse, self._efforts(), strict=True)]

    def _efforts(self) -> Array:
        """Factors ``(n, 1)`` or ``(n, 3)`` of the columns from ``d`` to ``e``."""
        joints, ratios = self.ratio.shape
        return np.hstack([self.ratio, np.full((joints, ratios), self.shift), np.ones((joints, 1))])

    def system(self, weights: Array) -> tuple[Array, Array]:
        """Jacobian and residuals of data and prior, for parameters in units of the root, ``-log g`` and ratios."""
        size, joints, ratios = len(self.root), *self.ratio.shape
        rows, residuals = [], []
        for block in self.blocks:
            for joint, (equations, residual) in enumerate(zip(block.rows, self.residuals(block), strict=True)):
                row = np.zeros((len(residual), size + joints * (1 + ratios) + ratios))
                row[:, :size] = self.inverse[joint] * equations[:, :size] @ self.root
                row[:, size + joint] = residual + equations[:, size:] @ self._efforts()[joint]
                if ratios:
                    row[:, [size + joints + joint, -1]] = -equations[:, size : size + 2]
                rows.append(weights[joint] * row)
                residuals.append(weights[joint] * residual)
        common = np.full((joints, joints), 1 / joints)
        # Gains of commands are declared; gains of measured efforts may have any unit.
        of_common = TYPICAL_GAIN_ERROR if ratios else _UNKNOWN_FACTOR_DEVIATION
        of_gains = (np.eye(joints) - common) / TYPICAL_GAIN_ERROR + common / of_common
        of_ratios = np.eye(self.ratio.size) / TYPICAL_GAIN_ERROR
        of_shift = np.eye(ratios) / _TYPICAL_DELAY_ERROR_S
        prior = scipy.linalg.block_diag(np.eye(size), of_gains, of_ratios, of_shift)
        away = np.linalg.solve(self.root, self.parameters - self.prior)
        residuals += [away, of_gains @ np.log(self.inverse), of_ratios @ self.ratio.ravel(),
            of_shift @ np.full(ratios, self.shift)]
        return np.vstack([*rows, prior]), np.concatenate(residuals)

    def covariance(self, fraction: Array) -> Array:
        """Covariance of the unknowns of :meth:`system`, for a given share ``(n,)`` of independent samples."""
        J, _ = self.system(self.weights(fraction))
        return np.asarray(np.linalg.inv(J.T @ J), dtype=float)


def _by_load(blocks: Sequence[LoadEquations]) -> list[LoadEquations]:
    """Merge blocks with equal loads."""
    loads: dict[bytes, list[LoadEquations]] = {}
    for block in blocks:
        loads.setdefault(block.load.tobytes(), []).append(block)
    merged = []
    for alike in loads.values():
        joints = zip(*(block.rows for block in alike), strict=True)
        rows = [np.asarray(np.linalg.qr(np.vstack(of_joint), mode="r")) for of_joint in joints]
        merged.append(LoadEquations(alike[0].load, rows, np.sum([block.counts for block in alike], axis=0)))
    return merged


def _load_equations(
        equations: Equations, load: Array, samples: Samples, commanded: Sequence[Array] = ()) -> LoadEquations:
    """Equations of a block of samples, with its parts ``(N, n, 2)`` of commands, if any."""
    size = len(load) + 2 * len(commanded)
    rows = [np.zeros((0, size + 1)) for _ in range(equations.count)]
    for batch, blocks in zip(batches(len(samples)), dense_equations(equations, samples), strict=True):
        for channel, (A, effort) in enumerate(blocks):
            further = np.zeros((len(A), size + 1))
            further[:, equations.columns[channel]] = A
            further[:, -1] = effort
            for parts in commanded:
                further[:, len(load) : size] = parts[batch, channel][samples.mask[batch, channel]]
            rows[channel] = np.asarray(np.linalg.qr(np.vstack([rows[channel], further]), mode="r"))
    return LoadEquations(load, rows, samples.mask.sum(axis=0))


def _misplaced_loads(fit: GainFit, model: RobotModel, fraction: Array, wider: float) -> tuple[Finding, ...]:
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
    layout = model.layout
    of_links = [block.load[: layout.inertial_size].reshape(-1, BODY_PARAMETERS).any(axis=1) for block in fit.blocks]
    loaded = [(number, int(links.argmax())) for number, links in enumerate(of_links) if links.sum() == 1]
    if not loaded:
        return ()
    free = [slice(layout.body(link).start + 1, layout.body(link).stop) for _, link in loaded]
    try:
        freed = _with_free_loads(fit, [number for number, _ in loaded], free)
    except IdentificationError:
        return ()  # masses alone do not determine the gains here, so positions of the loads stay unknown
    root, size, findings = freed.root, len(fit.prior), []
    covariance = root @ freed.covariance(fraction)[: len(root), : len(root)] @ root.T
    for start, (number, link) in zip(range(size, len(root), _FREE_OF_LOAD), loaded, strict=True):
        mass, *declared = fit.blocks[number].load[layout.body(link)][:4]
        moments = slice(start, start + 3)
        deviation = wider * float(np.sqrt(np.linalg.eigvalsh(covariance[moments, moments])[-1])) / mass
        centre = freed.parameters[moments] / mass
        distance = float(np.linalg.norm(centre - np.array(declared) / mass))
        if distance < max(_FAR_CENTRE_M, _FAR_CENTRE_DEVIATIONS * deviation):
            continue
        place = ", ".join(f"{value:.3g}" for value in centre)
        evidence = (
            f"the load of {mass:.4g} kg acts as if its centre of mass were {distance:.2g} m away from the declared"
            f" position, at ({place}) m in {model.link_names[link]}")
        findings.append(Finding.with_remedy("load_elsewhere", Severity.CARE, evidence, model.link_names[link]))
    return tuple(findings)


def _with_free_loads(fit: GainFit, numbers: Sequence[int], free: Sequence[slice]) -> GainFit:
    """Fit in which first moments and inertias of loads are further parameters, with a wide prior about zero.

    The further parameters follow the others, nine per load. Raises IdentificationError: the fit does not converge.

    Parameters
    ----------
    numbers, free : blocks of the loads, and the columns of their first moments and inertias
    """
    size, none = len(fit.prior), np.zeros(_FREE_OF_LOAD * len(numbers))
    blocks = [
        block._replace(
            load=np.append(block.load, none),
            rows=[np.insert(joint, none.size * [size], 0.0, axis=1) for joint in block.rows])
        for block in fit.blocks]
    start, deviations = [fit.parameters], []
    for index, (number, columns) in enumerate(zip(numbers, free, strict=True)):
        load, rows, _ = blocks[number]
        start.append(load[columns].copy())
        deviations.append(load[columns.start - 1] * np.repeat([_LOAD_SIZE_M, _LOAD_SIZE_M**2], [3, 6]))
        load[columns] = 0.0
        new = size + _FREE_OF_LOAD * index
        for joint in rows:
            joint[:, new : new + _FREE_OF_LOAD] = joint[:, columns]
    root = scipy.linalg.block_diag(fit.root, np.diag(np.concatenate(deviations)))
    return replace(
        fit, blocks=blocks, prior=np.append(fit.prior, none), root=root, parameters=np.concatenate(start)).converged()
