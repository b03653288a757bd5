"""MAP fit: iterate channel weights, prior spread and solution to a fixed point.

A :class:`MapFit` is the state of a fit. Each step returns the next state, so that a fit reads as a list of steps.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import attrs
import numpy as np

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.core.arrays import Array, IntArray, Mask
from inertid_ros.core.errors import ConvergenceError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.posterior import ErrorSources, posterior
from inertid_ros.identification.assessment.unmodelled import UnmodelledEffects, unmodelled_effects
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.identification.base_parameters.numeric import base_parameters
from inertid_ros.identification.information import data_checks
from inertid_ros.identification.information.delay import Delay, without_delay
from inertid_ros.identification.information.information import ROUNDING_SHARE, Information, compress
from inertid_ros.identification.information.residuals import band_fraction, effective_fraction, noise_levels
from inertid_ros.identification.solvers import regularizers
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.identification.solvers.convex_program import Solution
from inertid_ros.identification.solvers.coordinates import TYPICAL_PRIOR_SPREAD, prior_coordinates
from inertid_ros.identification.solvers.map_problem import MapProblem
from inertid_ros.regressors.equations import Equations, dense_equations

from .term_significance import DriveTermTest, fitted_stribeck, has_joints, stribeck_where_significant

_MAX_REWEIGHTINGS = 30
_REWEIGHTING_TOLERANCE = 3e-3
_COARSER_FACTOR = 10.0  # factor on the deviations if the solver finds no optimum


@dataclass(frozen=True)
class FitData:
    """Data of a fit.

    Attributes
    ----------
    recordings : empty if only their information is given
    prior_spreads : (nb,), prior spread per body; NaN (or None for all bodies) selects the options' prior spread
    further : samples that are read one recording at a time, see :meth:`MapFit.with_further`
    """

    equations: Equations
    recordings: tuple[Samples, ...]
    information: Information
    delay: Delay | None = None
    prior_spreads: Array | None = None
    further: Iterable[Samples] = ()

    @property
    def removed_delay(self) -> float:
        """Delay of effort that has been removed [s]."""
        return 0.0 if self.delay is None else self.delay.removed

    @cached_property
    def least_deviation(self) -> Array:
        """Lower bound ``(c,)`` of residual deviations: error of the preparation, or rounding of equations if larger."""
        information = self.information
        measured, expected = information.rms_measured, information.rms_error(self.equations.model.prior)
        size = np.where(measured > 0, measured, expected)
        rounding = ROUNDING_SHARE * np.where(size > 0, size, 1.0)
        return np.maximum(data_checks.resolution(self.equations, self.recordings), rounding)


@dataclass(frozen=True)
class MapFit:
    """State of a MAP fit of one set of data.

    Attributes
    ----------
    deviation, fraction : ndarray, shape (c,)
        Per channel: standard deviation of the residual (at first, of the prior's residual), and share of independent
        samples.
    regularization : regularization with the current prior spread
    discount : weight of all data against the prior, at most 1, while the prior spread is estimated
    outliers : (c,), number of outliers left out so far; None before a search for outliers
    noise_ratio : ndarray or None, shape (c,)
        Variance of independent noise with the effect of a channel's correlated residual, over the residual's variance.
    speed_covariance : (p, p), covariance of the parameters due to the uncertainty of fitted Stribeck speeds
    complete : Information or None
        Information that still has the columns of left-out Stribeck friction. The friction may exist below the
        detection limit; the covariance includes the error that it then causes in all friction parameters.
    left_out : parameters set to zero as not significant; true values may lie below the detection limit
    """

    data: FitData
    map_problem: MapProblem
    options: IdentifyOptions
    deviation: Array
    fraction: Array
    regularization: regularizers.Regularization
    discount: float = 1.0
    solution: Solution | None = None
    outliers: IntArray | None = None
    noise_ratio: Array | None = None
    speed_covariance: Array | None = None
    complete: Information | None = None
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: FitData, options: IdentifyOptions, constraints: Constraints) -> "MapFit":
        """Set up the fit of data under options and constraints."""
        model, prior_spread = data.equations.model, options.prior_spread or TYPICAL_PRIOR_SPREAD
        fixed = dict.fromkeys((*constraints.fixed, *model.layout.known_terms))
        constraints = attrs.evolve(constraints, fixed=tuple(fixed))
        map_problem = MapProblem(prior_coordinates(model, data.information), model.prior, constraints, options.solver)
        plain = regularizers.Regularization(
            options.regularizer, prior_spread, options.drive_weight, own_prior_spreads=data.prior_spreads)
        regularization = map_problem.completed(plain, model.consistent_prior - model.inertial_locked)
        # Weights by the residuals of the prior; only the band of the low-pass limits the number of independent
        # samples.
        information = data.information
        deviation = np.maximum(information.deviation(model.prior), 0.01 * information.rms_measured)
        fraction = band_fraction(data.recordings) if data.recordings else np.ones(len(deviation))
        deviation = np.maximum(deviation, data.least_deviation)
        return cls(data, map_problem, options, deviation, fraction, regularization)

    @property
    def weights(self) -> Array:
        """Residual weight ``(c,)`` per channel."""
        return np.asarray(np.sqrt(self.fraction * self.discount) / self.deviation)

    @cached_property
    def _held(self) -> Mask:
        """Mask ``(p,)`` of parameters that keep their prior values: fixed by constraints, or left out."""
        fixed = self.map_problem.constraints.fixed
        return np.isin(self.data.equations.model.layout.names, (*fixed, *self.left_out))

    def undiscounted(self) -> "MapFit":
        """Reweight with all independent samples, under the prior spread estimated from discounted samples.

        With all samples, the estimate of the prior spread would mistake residuals that correlate with the regressor
        for bodies far from the prior. Under a fixed prior spread, all samples may count: on recordings of real arms,
        the parameters then predict other motions better.
        """
        return replace(self, discount=1.0).reweighted(self.regularization.prior_spread)

    def reweighted(self, given_spread: float = 0.0) -> "MapFit":
        """Iterate weights (residual deviation per channel) and prior spread to their fixed point.

        A nonzero ``given_spread``, or else a configured prior spread, stays fixed.

        Raises
        ------
        ConvergenceError
            The solver finds no optimum.
        """
        information, fit = self.data.information, self
        given_spread = given_spread or self.options.prior_spread
        start: Solution | None = None
        least = self.data.least_deviation
        for iteration in range(_MAX_REWEIGHTINGS):
            # Solve under the current weights, from the last solution.
            R, z = fit.normalised_equations
            try:
                start = solution = self.map_problem.solve(R, z, fit.regularization, start)
            except ConvergenceError as error:
                # Without noise, data outweigh the prior beyond the solver's resolution: use larger deviations.
                if iteration == _MAX_REWEIGHTINGS - 1 or (fit.deviation > information.rms_measured).all():
                    raise ConvergenceError(f"{error}; {fit._most_weighted()}") from None
                least, start = _COARSER_FACTOR * fit.deviation, None
                fit = replace(fit, deviation=least)
                continue
            # Residual deviation per channel, then the prior spread of largest evidence.
            deviation = np.maximum(information.deviation(self._physical(solution)), least)
            prior_spread = given_spread or regularizers.prior_spread_of_largest_evidence(
                R, solution, information.layout, fit.regularization, self._held)
            changes = deviation / fit.deviation - 1, prior_spread / fit.regularization.prior_spread - 1
            if max(np.max(np.abs(change)) for change in changes) <= _REWEIGHTING_TOLERANCE:
                break
            regularization = replace(fit.regularization, prior_spread=prior_spread)
            fit = replace(fit, deviation=deviation, regularization=regularization)
        return replace(fit, solution=solution)

    def _most_weighted(self) -> str:
        """Name the channel that outweighs the prior most, for a message."""
        information = self.data.information
        relative = self.deviation / np.maximum(information.rms_measured, 1e-300)
        channel = int(np.argmin(np.where(information.counts > 0, relative, np.inf)))
        return (f"{information.names[channel]} has the largest weight: its error of {self.deviation[channel]:.1e} is"
            f" {relative[channel]:.1e} of its effort; check its unit (robot.effort_scale), or leave its effort out")

    @property
    def normalised_equations(self) -> tuple[Array, Array]:
        """Weighted equations ``R (p, p)`` and ``z (p,)`` in normalised coordinates, without left-out parameters."""
        return self._normalised(*self.data.information.whitened(self.weights))

    def _normalised(self, R: Array, z: Array) -> tuple[Array, Array]:
        R, z = self.map_problem.coordinates.normalise(R, z)
        R[:, np.isin(self.map_problem.coordinates.layout.names, self.left_out)] = 0.0
        return R, z

    def refitted(self, estimate: Estimate) -> Array:
        """Fit parameters ``(p,)`` once, with the channel weights and the prior spread of an estimate."""
        fit = replace(
            self, regularization=replace(self.regularization, prior_spread=estimate.prior_spread),
            deviation=1 / estimate.weights, fraction=np.ones(len(estimate.weights)), discount=1.0)
        solution = self.map_problem.solve(*fit.normalised_equations, fit.regularization)
        return replace(fit, solution=solution).with_bodies_of_samples().parameters

    def with_bodies_of_samples(self) -> "MapFit":
        """Under the geodesic regularizer, fit bodies again by geodesic least squares to the equations of all samples.

        Compressed equations do not suffice: the method needs the distance from the hyperplane of every single sample.
        In a low-passed signal, every ``stride``-th sample is used and counts ``stride`` times.
        """
        if self.regularization.regularizer != "geodesic":
            return self
        equations, rows, targets = self.data.equations, [], []
        for samples in self.data.recordings:
            stride = samples.stride_of_products
            weights = self.weights * np.sqrt(stride)
            for blocks in dense_equations(equations, samples.select(slice(None, None, stride))):
                for weight, columns, (A, b) in zip(weights, equations.columns, blocks, strict=True):
                    rows.append(np.zeros((len(b), equations.model.layout.size)))
                    rows[-1][:, columns] = weight * A
                    targets.append(weight * b)
        A, b = self._normalised(np.vstack(rows), np.concatenate(targets))
        return replace(self, solution=self.map_problem.with_geodesic_bodies(self._solved, A, b, self.regularization))

    def without_outliers(self) -> "MapFit":
        """Leave gross outliers out, then discount samples for the correlation of their residuals.

        The current solution must count samples up to the limit by the low-pass band. Data then outweigh the prior, so
        residuals do not contain errors of the prior.
        """
        data = self.data
        kept, outliers = data_checks.without_outliers(
            data.equations.channels, data.recordings, self._residuals, self.options.outlier_threshold)
        fit = replace(self, data=replace(data, recordings=tuple(kept)), outliers=self._outliers_with(outliers))
        if outliers.any():
            information = replace(compress(data.equations, kept), earlier=data.information.earlier)
            fit = replace(fit, data=replace(fit.data, information=information)).reweighted()
        return fit._discounted()

    def with_all_independent(self) -> "MapFit":
        """Reset the share of independent samples to the limit by the low-pass band."""
        return replace(self, fraction=band_fraction(self.data.recordings), discount=1.0)

    def with_further(self) -> "MapFit":
        """Compress further samples, one recording at a time, and add their equations.

        The delay, the outlier limits and the share of independent samples come from the samples in memory.
        """
        data, count = self.data, np.zeros(self.data.equations.count, dtype=int)
        limits = data_checks.OutlierLimits.from_residuals(
            data.equations.channels, data.recordings, self._residuals, self.options.outlier_threshold)
        parameters = self.parameters

        def masked_samples() -> Iterator[Samples]:
            nonlocal count
            for part in data.further:
                samples = without_delay(part, data.removed_delay)
                residual = samples.tau - data.equations.predict(parameters, samples)
                masked, beyond = limits.masked(samples, residual, data_checks.MAX_OUTLIER_SHARE)
                count = count + beyond
                yield masked

        information = data.information + compress(data.equations, masked_samples())
        data = replace(data, information=information, further=())
        return replace(self, data=data, outliers=self._outliers_with(count))

    def _outliers_with(self, count: IntArray) -> IntArray:
        return count if self.outliers is None else self.outliers + count

    @property
    def parameters(self) -> Array:
        return self._physical(self._solved)

    @property
    def _solved(self) -> Solution:
        assert self.solution is not None, "reweighted() comes first"
        return self.solution

    def _physical(self, solution: Solution) -> Array:
        """Physical parameters ``(p,)``, with fixed parameters exactly at their values."""
        parameters, prior = self.map_problem.coordinates.physical(solution.x), self.data.equations.model.prior
        held = np.union1d(self.data.equations.model.layout.absent, np.flatnonzero(self._held))
        parameters[held] = prior[held]
        return parameters

    @property
    def _residuals(self) -> list[Array]:
        equations, parameters = self.data.equations, self.parameters
        return [samples.tau - equations.predict(parameters, samples) for samples in self.data.recordings]

    def _discounted(self) -> "MapFit":
        """Estimate the noise, and count only independent samples.

        The correlation of residuals sets the ratios between channels, since it scatters less than the scores of blocks
        (see :func:`.noise_levels`). The scores of all channels together set one factor, which weighs data against the
        prior.
        """
        recordings, residuals = self.data.recordings, self._residuals
        # Ratio of the noise by the variation of scores to the noise by the correlation of residuals.
        small, largest = noise_levels(
            self.data.equations, recordings, residuals, self._inverse_hessian, self.weights**2)
        independent = effective_fraction(residuals, [samples.mask for samples in recordings])
        fraction = np.minimum(independent, self.fraction)
        measured = self.data.information.counts > 0
        excess = float(np.mean((small * fraction / self.deviation**2)[measured]))
        ratio = np.where(largest > 0, largest / self.deviation**2, 1 / fraction)
        if excess < 1.0:
            fraction = np.minimum(fraction / max(excess, 1e-9), self.fraction)
        return replace(self, noise_ratio=ratio, fraction=fraction, discount=1 / max(excess, 1.0))

    def with_chosen_terms(self) -> "MapFit":
        """Keep rotor inertia and Stribeck friction only if they are significant in the data."""
        chosen = self.with_chosen_rotor_inertia().with_chosen_stribeck()
        return self if chosen is self else chosen.reweighted()

    def with_chosen_rotor_inertia(self) -> "MapFit":
        """Leave rotor inertia out if it is not significant over all joints together.

        A robot measures all its efforts on one side of the gears. Torque sensors behind the gears do not measure the
        inertia of the motors, so a fit of rotor inertia would wrongly take inertia from the links. Rotor inertia that
        the robot declares, or that a constraint fixes, stays.
        """
        equations, layout = self.data.equations, self.data.equations.model.layout
        names = layout.names[layout.drive("rotor_inertia")]
        held = set(names).intersection(self.map_problem.constraints.fixed)
        given = equations.model.prior[layout.drive("rotor_inertia")]
        if not names or held or given.any() or not has_joints(equations):
            return self
        test = self._test
        shown = test.passed_together(test.fit(equations, self.data.information, "rotor_inertia"))
        return self if shown else replace(self, left_out=names)

    @property
    def _test(self) -> DriveTermTest:
        counts = self.fraction * self.discount * self.data.information.counts
        bodies = len(self.data.equations.model.layout.body_names)
        return DriveTermTest(self.weights, counts, self.regularization.spreads(bodies))

    def with_chosen_stribeck(self) -> "MapFit":
        """Keep Stribeck friction only for joints with a significant effect, at fitted speeds if configured.

        Residuals at the given speeds contain errors of these speeds. So a second search takes its weights from
        residuals at the speeds of the first search.
        """
        chosen = self._with_stribeck_by_test()
        if chosen is not self and self.options.fit_stribeck_speed:
            second = chosen.with_all_independent().reweighted()._discounted()
            chosen = self.with_weights_of(second)._with_stribeck_by_test()
        return chosen

    def _with_stribeck_by_test(self) -> "MapFit":
        """Keep Stribeck friction only for joints with a significant effect, under the current weights."""
        equations, information = self.data.equations, self.data.information
        covariance = None
        if self.options.fit_stribeck_speed:
            recordings, earlier = self.data.recordings, information.earlier
            chosen, reduced, covariance = fitted_stribeck(equations, recordings, earlier, self._test)
        else:
            chosen, reduced = stribeck_where_significant(equations, information, self._test)
        if chosen is equations:
            return self
        data = replace(self.data, equations=chosen, information=reduced)
        return replace(
            MapFit.of(data, self.options, self.map_problem.constraints).with_weights_of(self),
            outliers=self.outliers,
            speed_covariance=covariance,
            # Fitted speeds change the columns of Stribeck friction, so old information does not apply.
            complete=None if self.options.fit_stribeck_speed else information,
            left_out=self.left_out)

    def with_weights_of(self, other: "MapFit") -> "MapFit":
        """Copy the weights of data and prior, and the noise, from another fit."""
        names = ("deviation", "fraction", "regularization", "discount", "noise_ratio")
        return replace(self, **{name: getattr(other, name) for name in names})

    @property
    def _inverse_hessian(self) -> Array:
        """Inverse Hessian ``(p, p)`` in physical parameters; fixed parameters have no variance."""
        root = regularizers.covariance_root(self.normalised_equations[0], self._solved, ~self._held)
        root = self.map_problem.coordinates.matrix[:, ~self._held] @ root
        return np.asarray(root @ root.T)

    def _unmodelled(self, noise: Array) -> tuple[UnmodelledEffects | None, Array]:
        """Effects outside the equations, and noise ``(c,)`` without significant effects, from the samples in memory.

        ``noise (c,)`` is the variance of the noise that contains the effects.
        """
        data, counts = self.data, self.data.information.counts
        in_memory = sum((samples.mask.sum(axis=0) for samples in data.recordings), np.zeros(len(counts)))
        weights = self.weights * np.sqrt(counts / np.maximum(in_memory, 1))
        found = unmodelled_effects(data.equations, self.parameters, data.recordings, weights, self._inverse_hessian)
        if found is None:
            return None, noise
        (effects, residuals), candidates = found, [noise]
        if residuals:
            _, without = noise_levels(
                data.equations, data.recordings, residuals, self._inverse_hessian, self.weights**2)
            candidates.insert(0, np.where(without > 0, np.minimum(without, noise), noise))
        for noise in candidates:
            ratio = float(np.mean((noise * self.weights**2)[counts > 0]))
            effects = replace(effects, noise_ratio=ratio)
            if any(effects.significant.values()):
                break
        return effects, noise

    def estimate(self) -> Estimate:
        solution, parameters = self._solved, self.parameters
        coordinates, information, model = self.map_problem.coordinates, self.data.information, self.data.equations.model
        ratio = 1 / self.fraction if self.noise_ratio is None else self.noise_ratio
        noise = ratio * self.deviation**2
        fitted = self.normalised_equations
        held = model.layout if self.complete is None else self.complete.layout
        inverse, left_out = np.linalg.inv(coordinates.matrix), np.isin(model.layout.names, self.left_out)
        left_out[np.setdiff1d(model.layout.absent, held.absent)] = True
        unmodelled, noise = self._unmodelled(noise)
        # Covariance due to Stribeck speeds, which the equations assume as known, and to effects that they leave out.
        parts = [self.speed_covariance, None if unmodelled is None else unmodelled.covariance]
        assumed = sum((inverse @ part @ inverse.T for part in parts if part is not None), np.zeros_like(inverse))
        noisy = coordinates.normalise(*(self.complete or information).whitened(1 / np.sqrt(noise)))
        convex_program = self.map_problem.convex_program(*fitted, self.regularization)
        covariance, interval = posterior(fitted, ErrorSources(noisy, assumed, left_out), solution, convex_program,
            coordinates, self.regularization)
        missed = np.array([channel.expected_square(covariance) for channel in information.channels])
        deviation = np.sqrt(self.deviation**2 + missed / np.maximum(information.counts, 1))
        kept = np.ones(len(parameters))
        kept[held.absent] = 0.0  # fixed parameters have no variance; parameters left out by a test do
        r_factor, _ = information.whitened(1 / self.deviation)
        return Estimate(
            equations=self.data.equations, parameters=parameters, covariance=kept[:, None] * covariance * kept,
            residual_deviation=deviation, effective_counts=np.minimum(deviation**2 / noise, 1.0) * information.counts,
            base=base_parameters(model.layout, r_factor, base_parameters_of_robot(model)),
            train_relative_error=information.relative_error(parameters),
            prior_spread=self.regularization.prior_spread, own_prior_spreads=self.data.prior_spreads,
            solution=solution, recordings=tuple(samples.name for samples in self.data.recordings),
            information=information, weights=self.weights, bounded_interval=interval, delay=self.data.removed_delay,
            delay_found=self.data.delay, outliers=self.outliers, left_out=self.left_out, unmodelled=unmodelled)
