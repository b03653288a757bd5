"""Gains of drives from recordings with and without known loads ([Gautier2014]_).

A drive reports its torque up to a factor, gear ratio times torque constant, that is known to some per cent or not at
all. Without anything of known weight, gains and parameters are determined up to a common factor; a known load fixes it.
With ``e = A_j (x + x_load) / g_j`` per joint ``j`` and recording, where the parameters ``x_load`` of the load stand in
the columns of the link that holds it, noise is in the efforts ``e`` alone, so that the estimate of ``g_j`` has no bias
as that of a regression on measured efforts has. Gauss-Newton steps solve for ``x`` and all ``log g_j`` at once, from R
factors of the recordings of each load.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.findings import Finding
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.information.residuals import effective_fraction
from inertid_ros.regressors.equations import Equations
from inertid_ros.regressors.load_torque import load_torque

from .gain_fit import TYPICAL_GAIN_ERROR, GainFit
from .load_centres import load_centres

_IDENTIFIED_SHARE = 0.9  # of the prior variance of a gain that loads must take away
_BLOCKS, _MOST_BLOCKS = 16, 64  # of each recording; in all, for the jackknife


@dataclass(frozen=True)
class DriveGains:
    """Factor from reported to true effort of every joint.

    Attributes
    ----------
    joint_names : tuple of str
        In the order of the model.
    values : ndarray, shape (n,)
        Gains; beyond ``robot.effort_scale`` as it was given.
    covariance : ndarray, shape (n, n)
        Of their logarithms.
    identified : tuple of bool
        Whether the loads determine a gain; else it is near the common factor of all.
    findings : tuple of Finding
        ``load_elsewhere`` where a load does not act as declared.
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

    def widened_to(self, deviation: Array) -> "DriveGains":
        """The same gains with relative standard deviations of at least ``deviation`` ``(n,)``."""
        factor = np.maximum(deviation / self.relative_deviation, 1.0)
        return replace(self, covariance=self.covariance * np.outer(factor, factor))

    def widened(self, estimate: Estimate, efforts: Array) -> Estimate:
        """An estimate that was fitted with these gains, with their uncertainty in its covariance.

        Parameters
        ----------
        efforts : ndarray, shape (n, p)
            Products of the columns of each joint's equations with its scaled efforts, see :func:`effort_products`.
        """
        fraction = estimate.effective_counts / np.maximum(estimate.information.counts, 1)
        change = estimate.covariance @ (efforts * (fraction / estimate.residual_deviation**2)[:, None]).T
        return replace(estimate, covariance=estimate.covariance + change @ self.covariance @ change.T)


def drive_gains(equations: Equations, recordings: Sequence[Samples], loads: Sequence[Array]) -> DriveGains:
    """Gain of every joint's drive.

    Parameters
    ----------
    equations : Equations
        Of joint torques on a fixed base.
    recordings : sequence of Samples
        Less the torque of their loads.
    loads : sequence of ndarray, shape (nb, 10)
        Load of each recording.

    Raises
    ------
    IdentificationError
        All recordings have the same load, or the equations are others.
    """
    model = equations.model
    if equations.equation_type != "force" or model.free or model.options.contacts:
        raise IdentificationError(
            "identify.drive_gains: needs joint torques alone, on a fixed base and without contacts; leave it off"
        )
    by_load = {load.tobytes(): load for load in loads}
    if len(by_load) < 2:
        raise IdentificationError(
            "identify.drive_gains: all recordings have the same load, or none, so that gains are determined up to a"
            " common factor; add a recording with a known load (robot.loads)"
        )
    reported = [
        replace(samples, tau=samples.tau + load_torque(model, load, samples))
        for samples, load in zip(recordings, loads, strict=True)
    ]
    blocks = [
        (load, compress(equations, [block]))
        for samples, load in zip(reported, loads, strict=True)
        for block in samples.blocks(max(min(_BLOCKS, _MOST_BLOCKS // len(reported)), 1))
        if block.mask.any()
    ]
    fit = GainFit.of(equations, blocks)
    fraction = effective_fraction(fit.residuals(reported, loads), [samples.mask for samples in reported])
    covariance = fit.log_covariance(fraction)
    identified = 1 - np.diagonal(covariance) / TYPICAL_GAIN_ERROR**2 >= _IDENTIFIED_SHARE
    gains = DriveGains(model.joint_names, 1 / fit.inverse, covariance, tuple(map(bool, identified)))
    widened = gains.widened_to(fit.scatter())
    wider = float((widened.relative_deviation / gains.relative_deviation).max())
    findings = [centre.finding(model) for centre in load_centres(fit, fraction, wider)]
    return replace(widened, findings=tuple(finding for finding in findings if finding is not None))


def effort_products(equations: Equations, recordings: Sequence[Samples], loads: Sequence[Array]) -> Array:
    """``(n, p)`` products ``A_j^T g_j e_j`` of recordings with gains applied and loads taken off."""
    model = equations.model
    products = np.zeros((equations.count, model.layout.size))
    for key in {load.tobytes() for load in loads}:
        own = [(s, load) for s, load in zip(recordings, loads, strict=True) if load.tobytes() == key]
        torque = [replace(s, tau=s.tau + load_torque(model, load, s)) for s, load in own]
        for joint, channel in enumerate(compress(equations, torque).channels):
            products[joint, channel.columns] += channel.r_factor[:, :-1].T @ channel.r_factor[:, -1]
    return products
