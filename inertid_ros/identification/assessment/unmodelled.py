"""Effects that the equations leave out, and their part in the uncertainty of an estimate.

An encoder measures ``q + d``, where ``q`` is the position of the link. In an elastic joint with its encoder on the
motor, ``d`` is the torque of the joint times its compliance. An encoder with play rests until the link has crossed the
play. To first order, the measured torque then differs from the equations by the derivative of the torque along ``-d``
and its time derivatives: of the links' torque, and with play at the encoder also of the drive's. Dry friction may
change with the position, by a sum of cosines over the joint's recorded range.

The sizes of all effects are estimated as further parameters, with a prior. They do not change the estimate, because
controllers and simulators have no such effects, but their influence on the other parameters widens the intervals.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from inertid_ros.core.arrays import Array, Indices
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.filtering import low_pass
from inertid_ros.regressors.drives import DriveMotion
from inertid_ros.regressors.equations import Equations, dense_equations
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.kinematics import batches
from inertid_ros.robot.model import RobotModel

# Typical sizes, with which all effects are scaled: deflection at the RMS torque of a joint [rad or m] (a strain wave
# gear of 20 kN m/rad at 20 N m), play to either side [rad or m], and cosines of friction over Coulomb friction.
_DEFLECTION, _PLAY, _FRICTION_SHARE = 1e-3, 1e-4, 0.2
_SHAPES, _COSINES = 2, 6  # of deflections and of friction, per joint
_PRIOR_ITERATIONS = 10
_BAND_SHARE = 0.25  # of the cutoff; above, noise dominates the second derivative of the torque
_TURN_BAND_SHARE = 0.5  # of the cutoff, for the turn of a link while its encoder rests
_EXPLAINED_SHARE = 0.05  # of the squared residuals; smaller effects do not change the noise
# Reported effects: size over its deviation, and sizes. Other model errors resemble smaller effects.
_SHOWN_DEVIATIONS, _SHOWN_PLAY_DEVIATIONS = 5.0, 10.0  # friction near rest resembles play of light wrists
_SHOWN_DEFLECTION, _SHOWN_PLAY, _SHOWN_FRICTION_SHARE = 2e-4, 3e-4, 0.1
_MAX_PLAY_SHARE = 0.03  # error by play over torque; smaller errors do not matter
# Play of gears: squared residuals for a time after the load of a joint changes its sign, over all others.
_CROSSING_S, _MIN_REVERSALS, _MIN_CROSSING_RATIO = 0.1, 12, 4.0
_MAX_SIGNAL_TO_NOISE = 1e5  # weight times RMS torque; above, normal equations lose their digits
_STEP = 0.1  # of the typical deflection, for differences


@dataclass(frozen=True)
class UnmodelledEffects:
    """Sizes of the effects, and their part in the covariance of the parameters.

    Attributes
    ----------
    torque, coulomb : (n,), RMS torque of the links, and Coulomb friction of the estimate [N m or N]
    precision, slopes : (k, k) and (k,), precision of the effects' sizes from the data, and its product with the sizes
    change : (p, k), change of the parameters per typical effect
    noise_ratio : variance of the noise over the variance that the weights of the fit assume
    play_share : RMS error of the torque by play of encoders, over the RMS torque; zero if all effects explain little
    """

    torque: Array
    coulomb: Array
    precision: Array
    slopes: Array
    change: Array
    noise_ratio: float = 1.0
    play_share: float = 0.0

    @cached_property
    def posterior(self) -> tuple[Array, Array]:
        """Sizes ``(k,)`` over typical sizes, and a root ``(k, k)`` of their covariance.

        The prior variances of play and of friction maximise the evidence, separately for every joint.
        """
        joints = len(self.torque)
        cosines = np.repeat(np.arange(joints), _COSINES)
        groups = np.concatenate([np.arange(_SHAPES * joints), _SHAPES * joints + cosines])
        variance = np.ones(len(groups))
        for _ in range(_PRIOR_ITERATIONS):
            scale = np.sqrt(variance)
            values, axes = np.linalg.eigh(scale[:, None] * self.precision * scale / self.noise_ratio)
            root = scale[:, None] * axes / np.sqrt(np.maximum(values, 0.0) + 1.0)
            sizes = root @ root.T @ self.slopes / self.noise_ratio
            squares = np.bincount(groups, sizes**2 + np.sum(root**2, axis=1))  # expectation-maximisation
            variance = (squares / np.bincount(groups))[groups]
            variance[:joints] = 1.0  # of deflections
        return sizes, root

    @property
    def covariance(self) -> Array:
        """``(p, p)`` of the parameters, because their estimate leaves out the effects."""
        sizes, root = self.posterior
        effect = self.change @ np.column_stack([root, sizes])
        return np.asarray(effect @ effect.T)

    @property
    def sizes(self) -> Mapping[str, Array]:
        """Per cause, ``(n, 2)`` size of each joint and its standard deviation.

        Deflection at the RMS torque of the links, play to either side [rad or m], and RMS change of friction by
        position [N m or N].
        """
        joints, (sizes, root) = len(self.torque), self.posterior
        found = np.column_stack([sizes, np.linalg.norm(root, axis=1)])
        deflection, play, cosines = np.split(found, [joints, _SHAPES * joints])
        rms = np.sqrt(np.sum(cosines.reshape(joints, _COSINES, 2) ** 2, axis=1) / 2)
        return {
            "elastic_joints": _DEFLECTION * deflection, "encoder_play": _PLAY * play,
            "friction_by_position": _FRICTION_SHARE * self.coulomb[:, None] * rms}

    @property
    def significant(self) -> Mapping[str, list[int]]:
        """Joints with an effect that is reported, per cause."""
        least: dict[str, tuple[float, Array | float]] = {
            "elastic_joints": (_SHOWN_DEVIATIONS, _SHOWN_DEFLECTION),
            "encoder_play": (_SHOWN_PLAY_DEVIATIONS, _SHOWN_PLAY),
            "friction_by_position": (_SHOWN_DEVIATIONS, _SHOWN_FRICTION_SHARE * self.coulomb)}
        limits = {cause: np.maximum(number * self.sizes[cause][:, 1], size) for cause, (number, size) in least.items()}
        return {cause: np.flatnonzero(self.sizes[cause][:, 0] > limit).tolist() for cause, limit in limits.items()}


def unmodelled_effects(
        equations: Equations, parameters: Array, recordings: Sequence[Samples], weights: Array,
        inverse_hessian: Array) -> tuple[UnmodelledEffects, list[Array]] | None:
    """Effects from the residuals of a fit, and per recording the residuals ``(N, c)`` without them.

    The residuals are empty if the effects explain little.

    None for equations other than the torques of a fixed robot, for samples without a cutoff, and for samples without
    noise, whose weights are too large for normal equations.

    Parameters
    ----------
    weights : (c,), weights of the residuals in the fit; larger if ``recordings`` are only a part of the data
    inverse_hessian : (p, p), inverse Hessian of the fit
    """
    model, layout = equations.model, equations.model.layout
    torques_of_joints = equations.equation_type == "force" and not model.free
    if not (torques_of_joints and recordings and all(samples.cutoff_hz for samples in recordings)):
        return None
    torques = [_torque_of_links(model, parameters, samples) for samples in recordings]
    torque = np.sqrt(np.mean(np.concatenate(torques) ** 2, axis=0))
    if (weights * torque).max() > _MAX_SIGNAL_TO_NOISE:
        return None
    friction = parameters[layout.drive("coulomb")] if "coulomb" in layout.drive_terms else np.zeros(model.joints)
    coulomb = np.abs(friction)  # classical least squares may find negative friction
    positions = np.concatenate([samples.q for samples in recordings])
    scales = _Scales(
        torque, coulomb, positions.min(axis=0), np.maximum(np.ptp(positions, axis=0), 1e-12),
        np.full(model.joints, _PLAY))
    given = partial(_parts, equations, parameters)
    effects, slopes = _fitted(given, recordings, torques, scales, weights, inverse_hessian)
    if loose := effects.significant["encoder_play"]:  # the turn of a link takes longer with more play
        scales.play[loose] = effects.sizes["encoder_play"][loose, 0]
        effects, slopes = _fitted(given, recordings, torques, scales, weights, inverse_hessian)
    sizes, _ = effects.posterior
    residuals = [samples.tau - equations.predict(parameters, samples) for samples in recordings]
    total = sum(np.sum((samples.mask * weights * x) ** 2) for samples, x in zip(recordings, residuals, strict=True))
    if sizes @ slopes < _EXPLAINED_SHARE * total:
        return effects, []
    plays = np.where(np.arange(len(sizes)) // model.joints == _SHAPES - 1, sizes, 0.0)
    by_play = measured = 0.0
    for samples, links, residual in zip(recordings, torques, residuals, strict=True):
        for part in given(samples, links, scales):
            moved = part.regressor @ (effects.change @ sizes)[part.parameters]
            residual[part.rows, part.channel] -= part.effects @ sizes[part.columns] + moved
            by_play += np.sum((part.effects @ plays[part.columns]) ** 2)
            measured += np.sum(samples.tau[part.rows, part.channel] ** 2)
    return replace(effects, play_share=float(np.sqrt(by_play / max(measured, 1e-300)))), residuals


def _fitted(
        given: Callable[[Samples, Array, "_Scales"], Iterator["_Part"]], recordings: Sequence[Samples],
        torques: Sequence[Array], scales: "_Scales", weights: Array, inverse_hessian: Array,
) -> tuple[UnmodelledEffects, Array]:
    """Fit the sizes together with the parameters, and follow the change of the parameters; also return the slopes."""
    count = (_SHAPES + _COSINES) * len(scales.torque)
    squares, slopes, mixed = np.zeros((count, count)), np.zeros(count), np.zeros((len(inverse_hessian), count))
    for samples, links in zip(recordings, torques, strict=True):
        for part in given(samples, links, scales):
            weighted = samples.stride_of_products * weights[part.channel] ** 2 * part.effects
            squares[np.ix_(part.columns, part.columns)] += weighted.T @ part.effects
            slopes[part.columns] += part.residuals @ weighted
            mixed[np.ix_(part.parameters, part.columns)] += part.regressor.T @ weighted
    change = -inverse_hessian @ mixed
    determined = _determined(squares + mixed.T @ change, slopes)
    return UnmodelledEffects(scales.torque, scales.coulomb, *determined, change), slopes


def _determined(precision: Array, slopes: Array) -> tuple[Array, Array]:
    """Precision and slopes without directions that the data do not determine.

    If the fit weighs its samples differently, these directions have a negative precision, or a positive precision of
    this size.
    """
    values, axes = np.linalg.eigh(precision)
    axes = axes * (values > max(0.0, -values[0]))
    return axes * values @ axes.T, axes @ axes.T @ slopes


def check_unmodelled(effects: UnmodelledEffects | None, model: RobotModel) -> Iterator[Finding]:
    """Report significant effects, with their sizes."""
    if effects is None:
        return
    loads, lengths = np.where(model.slides, "N", "N m"), np.where(model.slides, "mm", "mrad")
    sizes = effects.sizes
    what = {
        "elastic_joints": "joints deflect under the load of their links",
        "encoder_play": "positions lag behind when a joint changes its direction",
        "friction_by_position": "friction changes along the range of joints"}
    for cause, joints in effects.significant.items():
        size, deviation = sizes[cause].T
        names, evidence = [model.joint_names[joint] for joint in joints], []
        for joint, name in zip(joints, names, strict=True):
            factor, unit = (1.0, loads[joint]) if cause == "friction_by_position" else (1e3, lengths[joint])
            text = f"{name} by {factor * size[joint]:.2g} ± {factor * deviation[joint]:.1g} {unit}"
            if cause == "elastic_joints":
                text += f" at {effects.torque[joint]:.3g} {loads[joint]} (RMS)"
            if cause == "friction_by_position":
                text += f" (RMS) of {effects.coulomb[joint]:.3g} {unit}"
            evidence.append(text)
        severity = Severity.NOTICE
        if cause == "encoder_play":
            evidence.append(f"which makes {100 * effects.play_share:.2g} % of the torque")
            severity = Severity.CARE if effects.play_share > _MAX_PLAY_SHARE else severity
        if names:
            yield Finding.with_remedy(cause, severity, f"{what[cause]}: {', '.join(evidence)}", *names)


def check_gear_play(
        effects: UnmodelledEffects | None, equations: Equations, parameters: Array, recordings: Sequence[Samples],
) -> Iterator[Finding]:
    """Report joints with large residuals just after their load changes its sign.

    The links then cross the play of the gear. The median over the reversals leaves out single events. Nothing is
    reported with play of encoders, which leaves large residuals at other instants.
    """
    if effects is None or effects.significant["encoder_play"]:
        return
    model = equations.model
    links = [_torque_of_links(model, parameters, samples) for samples in recordings]
    squares = [(samples.tau - equations.predict(parameters, samples)) ** 2 for samples in recordings]
    names, evidence = [], []
    for joint, name in enumerate(model.joint_names):
        crossing, others = [], []
        for samples, load, square in zip(recordings, links, squares, strict=True):
            used, window = samples.mask[:, joint], max(2, round(_CROSSING_S / samples.period))
            rows = np.flatnonzero(np.diff(np.sign(load[:, joint])))[:, None] + np.arange(window)
            rows = rows[rows[:, -1] < len(samples)]
            rows = rows[used[rows].mean(axis=1) > 0.5]
            crossing.append(np.average(square[rows, joint], axis=1, weights=used[rows]))
            others.append(square[np.setdiff1d(np.flatnonzero(used), rows), joint])
        means, rest = np.concatenate(crossing), np.concatenate(others)
        if len(means) < _MIN_REVERSALS or not rest.any():
            continue
        ratio = float(np.median(means) / np.mean(rest))
        if ratio > _MIN_CROSSING_RATIO:
            names.append(name)
            evidence.append(f"{name} by a factor of {np.sqrt(ratio):.1f}")
    if names:
        text = f"errors of the torque are larger just after the load of a joint changes its sign: {', '.join(evidence)}"
        yield Finding.with_remedy("gear_play", Severity.NOTICE, text, *names)


class _Scales(NamedTuple):
    """RMS torque of the links, Coulomb friction, lowest position, range and play of the joints, ``(n,)`` each."""

    torque: Array
    coulomb: Array
    lowest: Array
    span: Array
    play: Array


class _Part(NamedTuple):
    """Rows of one channel.

    Attributes
    ----------
    rows : (k,), rows of the samples
    parameters : (p_c,), columns of the channel's parameters
    regressor : (k, p_c), coefficients of the channel's parameters
    columns : (m,), effects on this channel: deflections of all joints, and the friction of its own joint
    effects, residuals : (k, m) and (k,), typical effects, and residuals
    """

    channel: int
    rows: Indices
    parameters: Indices
    regressor: Array
    columns: Indices
    effects: Array
    residuals: Array


def _parts(
        equations: Equations, parameters: Array, samples: Samples, links: Array, scales: _Scales) -> Iterator[_Part]:
    """Effects and residuals of the fitted equations of every ``stride``-th sample; ``links (N, n)`` is their torque."""
    model, stride = equations.model, samples.stride_of_products
    sparse, moved = samples.select(slice(None, None, stride)), _SHAPES * model.joints
    deflections = _deflections(samples, links, scales)[:, :, ::stride]
    error = sparse.tau - equations.predict(parameters, sparse)
    turns = np.pi * (sparse.q - scales.lowest) / scales.span
    direction = DriveMotion.from_samples(model.layout, sparse).direction[:, : model.joints]
    for rows, blocks in zip(batches(len(sparse)), dense_equations(equations, sparse), strict=True):
        effects = _effects_of(
            model, parameters, sparse.select(rows), links[::stride][rows], deflections[..., rows, :])
        for channel, (A, _) in enumerate(blocks):
            used = np.flatnonzero(sparse.mask[rows, channel])
            at = used + rows.start
            friction = _FRICTION_SHARE * scales.coulomb[channel] * direction[at, channel, None]
            friction = friction * np.cos(np.outer(turns[at, channel], np.arange(1, _COSINES + 1)))
            columns = np.r_[:moved, moved + _COSINES * channel + np.arange(_COSINES)]
            yield _Part(
                channel, stride * at, equations.columns[channel], A, columns,
                np.hstack([effects[:, used, channel].T, friction]), error[at, channel])


def _torque_of_links(model: RobotModel, parameters: Array, samples: Samples) -> Array:
    return rigid_torque(model, model.layout.bodies(parameters), samples.q, samples.v, samples.a)


def _deflections(samples: Samples, links: Array, scales: _Scales) -> Array:
    """Typical deflections of every kind and their two time derivatives, ``(shapes, 3, N, n)``."""
    elastic = links / np.maximum(scales.torque, max(1e-6 * scales.torque.max(), 1e-12))
    turned = samples.q + _low_passed(samples, scales.play * np.sign(samples.v), _TURN_BAND_SHARE)
    lag = _by_piece(samples, partial(_lag, play=scales.play), turned) / scales.play
    deflections = []
    for shape, band in ((_DEFLECTION * elastic, _BAND_SHARE), (_PLAY * lag, 1.0)):
        deflection = _low_passed(samples, shape, band)
        rate = _derivative(samples, deflection)
        deflections.append(np.stack([deflection, rate, _derivative(samples, rate)]))
    return np.stack(deflections)


def _lag(position: Array, play: Array) -> Array:
    """Positions of encoders that rest until their play ``(n,)`` is crossed, minus the links' positions ``(N, n)``."""
    lag = np.zeros_like(position)
    for row, step in enumerate(np.diff(position, axis=0)):
        lag[row + 1] = np.clip(lag[row] - step, -play, play)
    return lag


def _effects_of(model: RobotModel, parameters: Array, samples: Samples, links: Array, deflections: Array) -> Array:
    """Change of the torque ``(shapes n, N, n)`` by the deflection of one joint at a time."""
    layout, motion = model.layout, np.stack([samples.q, samples.v, samples.a])
    effects = np.empty((_SHAPES, model.joints, *links.shape))
    for deflection, effect in zip(deflections, effects, strict=True):
        for joint in range(model.joints):
            moved = motion.copy()
            moved[..., joint] -= _STEP * deflection[..., joint]
            effect[joint] = (rigid_torque(model, layout.bodies(parameters), *moved) - links) / _STEP
    own = np.arange(model.joints)
    for order, term in ((1, "viscous"), (2, "rotor_inertia")):
        if term in layout.drive_terms:  # drives move with their links, but not with encoders that have play
            effects[-1, own, :, own] -= (parameters[layout.drive(term)] * deflections[-1, order]).T
    return effects.reshape(-1, *links.shape)


def _by_piece(samples: Samples, function: Callable[[Array], Array], values: Array) -> Array:
    """Apply a function to the values ``(N, n)`` of every piece; zero between the pieces."""
    out = np.zeros_like(values)
    for rows in samples.even_rows():
        out[rows] = function(values[rows])
    return out


def _low_passed(samples: Samples, values: Array, band: float) -> Array:
    cutoff_hz = band * samples.cutoff_hz
    return _by_piece(samples, partial(low_pass, period=samples.period, cutoff_hz=cutoff_hz), values)


def _derivative(samples: Samples, values: Array) -> Array:
    return _by_piece(samples, lambda piece: np.gradient(piece, samples.period, axis=0), values)
