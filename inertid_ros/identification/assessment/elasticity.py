"""Elasticity of the joints, which the equations leave out, and its effect on the uncertainty of an estimate.

An encoder on the motor measures ``q + c tau``, where ``q`` is the position of the link, ``tau`` the torque of the joint
and ``c`` its compliance. To first order in ``c``, the measured torque then differs from the equations by ``c D``, where
``D`` is the derivative of the links' torque along ``-tau`` and its time derivatives. The compliances of all joints are
estimated as further parameters, with a prior. They do not change the estimate, because controllers and simulators have
no elastic joints, but their effect on the other parameters widens the intervals.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.filtering import low_pass
from inertid_ros.identification.information.information import compress
from inertid_ros.regressors.equations import Equations
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import RobotModel

_DEFLECTION = 1e-3  # typical, at the RMS torque of a joint [rad or m]: a strain wave gear of 20 kN m/rad at 20 N m
_BAND_SHARE = 0.25  # of the cutoff; above, noise dominates the second derivative of the torque
_SHOWN_DEVIATIONS, _SHOWN_DEFLECTION = 5.0, 2e-4  # of a reported deflection; model errors resemble smaller ones
_MAX_SIGNAL_TO_NOISE = 1e5  # weight times RMS torque; above, normal equations lose their digits
_STEP = 0.1  # of the typical deflection, for differences


@dataclass(frozen=True)
class Elasticity:
    """Deflection of the joints.

    Attributes
    ----------
    torque : (n,), RMS torque of the links [N m or N]
    deflection, deviation : (n,), deflection at this torque and its standard deviation [rad or m]
    root : (p, n + 1), root of the covariance of the parameters, because their estimate leaves out the deflection
    """

    torque: Array
    deflection: Array
    deviation: Array
    root: Array

    @property
    def covariance(self) -> Array:
        return np.asarray(self.root @ self.root.T)


def joint_elasticity(
        equations: Equations, parameters: Array, recordings: Sequence[Samples], weights: Array,
        inverse_hessian: Array, noise_ratio: float) -> Elasticity | None:
    """Elasticity of the joints from the residuals of a fit.

    None for equations other than the torques of a fixed robot, for samples without a cutoff, and for samples without
    noise, whose weights are too large for normal equations.

    Parameters
    ----------
    weights : (c,), weights of the residuals in the fit; larger if ``recordings`` are only a part of the data
    inverse_hessian : (p, p), inverse Hessian of the fit
    noise_ratio : variance of the noise over the variance that the weights assume
    """
    model = equations.model
    torques_of_joints = equations.equation_type == "force" and not model.free
    if not (torques_of_joints and recordings and all(samples.cutoff_hz for samples in recordings)):
        return None
    joints, bodies = model.joints, model.layout.bodies(parameters)
    torques = [rigid_torque(model, bodies, samples.q, samples.v, samples.a) for samples in recordings]
    torque = np.sqrt(np.mean(np.concatenate(torques) ** 2, axis=0))
    if (weights * torque).max() > _MAX_SIGNAL_TO_NOISE:
        return None
    compliance = _DEFLECTION / np.maximum(torque, max(1e-6 * torque.max(), 1e-12))
    # Products of the effects of typical compliances with each other, with the residuals and with the regressor.
    squares, slopes, mixed = np.zeros((joints, joints)), np.zeros(joints), np.zeros((len(parameters), joints))
    for samples, rigid in zip(recordings, torques, strict=True):
        stride = samples.stride_of_products
        sparse = samples.select(slice(None, None, stride))
        effects = _effects(model, bodies, samples, rigid, compliance)
        error = np.where(samples.mask, samples.tau - equations.predict(parameters, samples), 0.0)
        residual = _low_passed(samples, error)[::stride]
        weighted = stride * weights**2 * effects
        squares += np.einsum("jnc,knc->jk", weighted, effects)
        slopes += np.einsum("jnc,nc->j", weighted, residual)
        for joint, effect in enumerate(effects):  # product with the regressor: the effect as measured torque
            R, z = compress(equations, [replace(sparse, tau=effect)]).whitened(np.sqrt(stride) * weights)
            mixed[:, joint] += R.T @ z
    # Fit the compliances together with the parameters, and follow the change of the parameters.
    change = -inverse_hessian @ mixed
    of_data, axes = np.linalg.eigh(squares + mixed.T @ change)
    of_data = np.maximum(of_data, 0.0)
    compliances = axes / (of_data + 1.0) @ axes.T @ slopes  # the prior has precision 1
    root = axes * np.sqrt(noise_ratio * of_data + 1.0) / (of_data + 1.0)
    deviation = np.linalg.norm(root, axis=1)
    effect = change @ np.column_stack([root, compliances])
    return Elasticity(torque, _DEFLECTION * compliances, _DEFLECTION * deviation, effect)


def check_elasticity(elasticity: Elasticity | None, model: RobotModel) -> Iterator[Finding]:
    """Report joints with a significant deflection."""
    if elasticity is None:
        return
    deflection, deviation = elasticity.deflection, elasticity.deviation
    shown = np.flatnonzero((deflection > _SHOWN_DEVIATIONS * deviation) & (deflection > _SHOWN_DEFLECTION))
    names, sizes = [model.joint_names[joint] for joint in shown], []
    for joint, name in zip(shown, names, strict=True):
        unit, unit_of_load = ("mm", "N") if model.slides[joint] else ("mrad", "N m")
        size = f"{1e3 * deflection[joint]:.2g} ± {1e3 * deviation[joint]:.1g} {unit}"
        sizes.append(f"{name} by {size} at {elasticity.torque[joint]:.3g} {unit_of_load}")
    if sizes:
        evidence = f"joints deflect under the load of their links (RMS): {', '.join(sizes)}"
        yield Finding.with_remedy("elastic_joints", Severity.NOTICE, evidence, *names)


def _effects(model: RobotModel, bodies: Array, samples: Samples, rigid: Array, compliance: Array) -> Array:
    """Change of the torque ``(n, N / stride, n)`` by the compliance of each joint under the torque ``rigid (N, n)``."""
    stride = samples.stride_of_products
    deflection = _STEP * compliance * _low_passed(samples, rigid)
    rate = _derivative(samples, deflection)
    change = np.stack([deflection, rate, _derivative(samples, rate)])[:, ::stride]
    motion = np.stack([samples.q, samples.v, samples.a])[:, ::stride]
    effects = np.zeros((model.joints, *motion[0].shape))
    for joint in range(model.joints):
        moved = motion.copy()
        moved[..., joint] -= change[..., joint]
        effects[joint] = (rigid_torque(model, bodies, *moved) - rigid[::stride]) / _STEP
    return np.where(samples.mask[::stride], effects, 0.0)


def _by_piece(samples: Samples, function: Callable[[Array], Array], values: Array) -> Array:
    """Apply a function to the values ``(N, n)`` of every piece; zero between the pieces."""
    out = np.zeros_like(values)
    for rows in samples.even_rows():
        out[rows] = function(values[rows])
    return out


def _low_passed(samples: Samples, values: Array) -> Array:
    cutoff_hz = _BAND_SHARE * samples.cutoff_hz
    return _by_piece(samples, partial(low_pass, period=samples.period, cutoff_hz=cutoff_hz), values)


def _derivative(samples: Samples, values: Array) -> Array:
    return _by_piece(samples, lambda piece: np.gradient(piece, samples.period, axis=0), values)
