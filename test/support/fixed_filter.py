"""Torque errors of any parameters on a held-out recording by one fixed filter, every sample counted.

Nothing of preparation, masks or regressors of the library takes part: stamps are made even by linear interpolation, a
zero-phase Butterworth low-pass goes over position and torque, derivatives are those of the quintic spline, bodies are
Pinocchio's. Least squares is fitted to what was filtered in the same way.
"""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.robot.layout import Coupling
from inertid_ros.robot.model import RobotModel

ORDER = 4
RANK = 1e-7  # of the largest, what counts as a base parameter


@dataclass(frozen=True)
class FixedErrors:
    """Errors over all samples: ``rms (n,)`` [N m or N], and relative to the norm of the torque."""

    rms: Array
    relative: float


class _Motion:
    def __init__(self, recording: Recording, model: RobotModel, cutoff_hz: float) -> None:
        columns = [recording.joint_names.index(name) for name in model.joint_names]
        period = recording.duration / (len(recording) - 1)
        time = recording.time[0] + period * np.arange(len(recording))
        even = (
            np.stack([np.interp(time, recording.time, channel) for channel in values[:, columns].T], axis=1)
            for values in (recording.position, recording.effort)
        )
        sections = scipy.signal.butter(ORDER, cutoff_hz, fs=1 / period, output="sos")
        padding = min(len(time) - 1, int(3 / (cutoff_hz * period)))
        position, self.tau = (scipy.signal.sosfiltfilt(sections, values, axis=0, padlen=padding) for values in even)
        spline = scipy.interpolate.make_interp_spline(time, position, k=5)
        self.q, self.v, self.a = position, spline(time, 1), spline(time, 2)
        self.coupled = self.v @ model.layout.coupling_ratios.T, self.a @ model.layout.coupling_ratios.T
        signs = np.sign(np.hstack([self.v, self.coupled[0]]))
        self.sign = scipy.signal.sosfiltfilt(sections, signs, axis=0, padlen=padding)


class FixedFilter:
    """Parameters on one held-out recording.

    Parameters
    ----------
    model : RobotModel
        As given; its couplings take part.
    train : sequence of Recording
        What least squares is fitted to.
    test : Recording
        What errors are of.
    cutoff_hz : float
        Of the filter.
    """

    def __init__(self, model: RobotModel, train: list[Recording], test: Recording, cutoff_hz: float) -> None:
        self._model, self._pin = model, model.pinocchio
        self._train, self._test = ([_Motion(each, model, cutoff_hz) for each in group] for group in (train, [test]))

    def given(self) -> FixedErrors:
        """Of the URDF as given, with the damping and friction of its ``<dynamics>``."""
        layout, prior = self._model.layout, self._model.prior
        drive = {term: prior[layout.drive(term)] for term in layout.drive_terms}
        return self._errors(self._torque(self._model.body_prior, drive, np.zeros(3 * len(layout.couplings))))

    def of(self, estimate: Estimate) -> FixedErrors:
        """Of an estimate: its bodies, drives and couplings by the formula of docs/conventions.md."""
        layout = estimate.layout
        drive = {term: estimate.drive(term) for term in layout.drive_terms}
        coupled = estimate.parameters[layout.coupling_start : layout.coupling_start + 3 * len(layout.couplings)]
        return self._errors(self._torque(estimate.bodies, drive, coupled))

    def _torque(self, bodies: Array, drive: dict[str, Array], coupled: Array) -> Array:
        (motion,), joints, layout = self._test, self._model.joints, self._model.layout
        falling = np.exp(-np.abs(motion.v) / layout.stribeck_speed)
        sign = motion.sign[:, :joints]
        columns = {
            "rotor_inertia": motion.a, "viscous": motion.v, "coulomb": sign, "offset": 1.0, "stiffness": motion.q,
            "stribeck": falling * sign,
        }  # fmt: skip
        torque = self._bodies(bodies)
        for term, values in drive.items():
            torque += values * columns[term]
        for index, coupling in enumerate(layout.couplings):
            torque += self._coupled(motion, coupling, index) @ coupled[3 * index : 3 * index + 3]
        return torque

    def least_squares(self) -> FixedErrors:
        """Of ordinary least squares of base parameters, drives and couplings, the classical answer."""
        rows = np.concatenate([self._regressor(motion) for motion in self._train])
        target = np.concatenate([motion.tau for motion in self._train]).ravel()
        rows = rows.reshape(len(target), -1)
        size = np.linalg.norm(rows, axis=0)
        size[size == 0] = 1.0
        R, order = scipy.linalg.qr(rows / size, mode="r", pivoting=True)
        rank = int((np.abs(np.diag(R)) > RANK * abs(R[0, 0])).sum())
        chosen, solution = order[:rank], np.zeros(rows.shape[1])
        solution[chosen] = np.linalg.lstsq((rows / size)[:, chosen], target)[0] / size[chosen]
        return self._errors(self._regressor(self._test[0]) @ solution)

    def _bodies(self, bodies: Array) -> Array:
        model = self._pin.copy()
        for index, parameters in enumerate(bodies):
            model.inertias[index + 1] = pin.Inertia.FromDynamicParameters(parameters)
        data, (motion,) = model.createData(), self._test
        return np.array([pin.rnea(model, data, *row) for row in zip(motion.q, motion.v, motion.a, strict=True)])

    def _regressor(self, motion: _Motion) -> Array:
        data, joints = self._pin.createData(), self._model.joints
        samples = zip(motion.q, motion.v, motion.a, strict=True)
        bodies = np.array([pin.computeJointTorqueRegressor(self._pin, data, *row) for row in samples])
        terms = (motion.a, motion.v, motion.sign[:, :joints], np.ones_like(motion.v))
        drives = [values[:, :, None] * np.eye(joints) for values in terms]
        couplings = self._model.layout.couplings
        coupled = [self._coupled(motion, coupling, index) for index, coupling in enumerate(couplings)]
        return np.concatenate([bodies, *drives, *coupled], axis=2)

    def _coupled(self, motion: _Motion, coupling: Coupling, index: int) -> Array:
        """``(N, n, 3)`` torque of rotor inertia, viscous and Coulomb friction of one on every joint."""
        speed, acceleration = motion.coupled
        sign = motion.sign[:, self._model.joints + index]
        columns = np.stack([acceleration[:, index], speed[:, index], sign], axis=1)
        ratios = np.zeros(self._model.joints)
        ratios[[self._model.joint_names.index(name) for name in coupling.joints]] = coupling.ratios
        return columns[:, None, :] * ratios[:, None]

    def _errors(self, torque: Array) -> FixedErrors:
        (motion,) = self._test
        error = torque - motion.tau
        rms = np.sqrt(np.mean(error**2, axis=0))
        return FixedErrors(rms, float(np.linalg.norm(error) / np.linalg.norm(motion.tau)))
