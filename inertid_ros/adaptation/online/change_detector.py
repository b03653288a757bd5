"""Tells a payload, a lost part or rising friction from noise, by the innovation of a calibrated robot.

The innovation ``e = tau - A x`` of a window of independent samples is normal with covariance ``C = S + A P A^T``:
noise, and what calibration and drift of friction leave unknown. A change of the body of a link, or of the friction of a
joint, adds ``B d`` for columns ``B`` of ``A``. Twice the logarithm of the generalised likelihood ratio of each is
chi-squared with as many degrees of freedom as ``d`` has while nothing changes, whatever the motion
([Basseville1993]_ ch. 7).
"""

from collections import deque
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import scipy

from inertid_ros.adaptation.calibrated_robot import CalibratedRobot, FrictionDrift
from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import semidefinite_root
from inertid_ros.core.samples import Samples
from inertid_ros.robot.bodies.layout import ParameterLayout

from .innovation_noise import error_deviation

_BODY_COLUMNS = 4  # mass and first moments: what gravity shows within a window
_FRICTION = ("viscous", "coulomb")
_FEWEST = 3  # independent samples of a window
_INVISIBLE = 1e-4  # singular value, relative to unit columns, below which a window does not show a direction


class Cause(Enum):
    """What a change is."""

    PAYLOAD = "payload"
    LOST_PART = "lost part"
    RISING_FRICTION = "rising friction"
    FALLING_FRICTION = "falling friction"


@dataclass(frozen=True)
class DetectorOptions:
    """When a change is told.

    Attributes
    ----------
    window_s : float
        Length of the window [s].
    false_alarms_per_hour : float
        Largest expected number while noise is normal and friction drifts as stated.
    drift : FrictionDrift
        Friction since the calibration that is no change.
    """

    window_s: float = 0.4
    false_alarms_per_hour: float = 0.01
    drift: FrictionDrift = field(default_factory=FrictionDrift)


@dataclass(frozen=True)
class Change:
    """A change of the robot.

    Attributes
    ----------
    time : float
        Of the newest sample that it was told by [s].
    cause : Cause
        What explains the innovation best.
    subject : str
        Link or joint.
    amount, deviation : float
        Mass [kg] of a body, or friction torque at the mean speed of the window [N m or N].
    ratio : float
        Twice the logarithm of the likelihood ratio.
    threshold : float
        Of ``ratio``.
    settled : bool
        Whether all samples of the window are later than those at which a change was told first.
    """

    time: float
    cause: Cause
    subject: str
    amount: float
    deviation: float
    ratio: float
    threshold: float
    settled: bool


class ChangeDetector:
    """Compares blocks of samples with a calibrated robot.

    Parameters
    ----------
    robot : CalibratedRobot
        What is expected.
    options : DetectorOptions, optional
        Window and false alarms.

    Attributes
    ----------
    tested : bool
        Whether the last window held enough to be tested; a robot at rest shows nothing.
    """

    def __init__(self, robot: CalibratedRobot, options: DetectorOptions | None = None) -> None:
        self._robot, self._options = robot, options or DetectorOptions()
        drift = self._options.drift
        known = [semidefinite_root(robot.covariance).T]
        known.append(drift.root(robot.layout, robot.parameters, drift.since_calibration))
        self._known = np.hstack(known)
        self._writer = robot.equations.writer()
        self._hypotheses = _hypotheses(robot.layout)
        self._thresholds: dict[tuple[float, int], float] = {}
        self._window: deque[_Instant] = deque()
        self._skipped = 0
        self._told: float | None = None
        self.tested = False

    def add(self, samples: Samples) -> Change | None:
        """Take a block; a change, if the window that ends with it shows one.

        A change is told anew with every block until another robot is expected, by a new detector. Masked equations
        count nowhere.

        Parameters
        ----------
        samples : Samples
            Block of a stream, in the order of time.
        """
        self._take(samples)
        while self._window and self._window[-1].time - self._window[0].time > self._options.window_s + 1e-9:
            self._window.popleft()
        period = float(samples.time[-1] - samples.time[0]) * len(samples) / max(len(samples) - 1, 1)
        found = self._tested(period)
        if found is None:
            self._told = None
        return found

    def _take(self, samples: Samples) -> None:
        """Put the independent samples of a block to the window."""
        equations, robot = self._robot.equations, self._robot
        stride = max(1, int(0.5 / (samples.cutoff_hz * samples.period)))
        chosen = samples.select(slice(self._skipped % stride, None, stride))
        self._skipped = (self._skipped - len(samples)) % stride
        if not len(chosen):
            return
        work = np.zeros((equations.count, self._writer.width, len(chosen)))
        self._writer.write(chosen, slice(0, len(chosen)), work)
        rows = np.zeros((len(chosen), equations.count, robot.layout.size))
        for channel, (span, expansion) in enumerate(zip(self._writer.spans, self._writer.expansions, strict=True)):
            rows[:, channel, equations.columns[channel]] = work[channel, span.start : span.stop - 1].T @ expansion
        deviation = error_deviation(robot, chosen)
        errors = (chosen.tau - rows @ robot.parameters) / deviation
        rows /= deviation[..., None]
        for row, used in enumerate(chosen.mask):
            self._window.append(_Instant(float(chosen.time[row]), rows[row, used], errors[row, used], chosen.v[row]))

    def _tested(self, period: float) -> Change | None:
        """The change that explains the window best; tests are made every ``period`` seconds."""
        self.tested = False
        if len(self._window) < _FEWEST:
            return None
        A = np.concatenate([each.rows for each in self._window])
        e = np.concatenate([each.errors for each in self._window])
        if not len(e):
            return None
        self.tested = True
        uncertain = A @ self._known
        lower = np.linalg.cholesky(np.eye(len(e)) + uncertain @ uncertain.T)
        white = scipy.linalg.solve_triangular(lower, np.column_stack([A, e]), lower=True)
        white, error = white[:, :-1], white[:, -1]
        hypotheses = self._hypotheses
        share = self._options.false_alarms_per_hour * period / 3600.0 / len(hypotheses)
        found, best = None, -np.inf
        for hypothesis in hypotheses:
            fit = _Fit.of(white[:, hypothesis.columns], error)
            threshold = self._threshold(share, len(hypothesis.columns))
            evidence = fit.ratio - len(hypothesis.columns) * np.log(len(e))
            if fit.ratio > threshold and evidence > best:
                found, best = self._change(hypothesis, fit, threshold), evidence
        if found is None:
            return None
        if self._told is None:
            self._told = found.time
        return replace(found, settled=self._window[0].time > self._told)

    def _threshold(self, share: float, freedom: int) -> float:
        key = (round(share, 15), freedom)
        if key not in self._thresholds:
            self._thresholds[key] = float(scipy.stats.chi2.isf(share, freedom))
        return self._thresholds[key]

    def _change(self, hypothesis: "_Hypothesis", fit: "_Fit", threshold: float) -> Change:
        direction = np.eye(len(fit.change))[0]
        causes = (Cause.PAYLOAD, Cause.LOST_PART)
        if not hypothesis.is_body:
            joint = self._robot.layout.joints.index(hypothesis.subject)
            speed = np.mean([abs(each.velocity[joint]) for each in self._window])
            direction = np.array([speed, 1.0])[: len(fit.change)]
            causes = (Cause.RISING_FRICTION, Cause.FALLING_FRICTION)
        amount, deviation = float(direction @ fit.change), float(np.linalg.norm(direction @ fit.root))
        cause = causes[0] if amount >= 0 else causes[1]
        now = self._window[-1].time
        return Change(now, cause, hypothesis.subject, amount, deviation, fit.ratio, threshold, False)


@dataclass(frozen=True)
class _Hypothesis:
    """Link or joint, its columns, and whether it is a link."""

    subject: str
    columns: list[int]
    is_body: bool


def _hypotheses(layout: ParameterLayout) -> tuple[_Hypothesis, ...]:
    bodies = [
        _Hypothesis(link, list(range(layout.body(index).start, layout.body(index).start + _BODY_COLUMNS)), True)
        for index, link in enumerate(layout.links)
    ]
    terms = [term for term in _FRICTION if term in layout.drive_terms]
    friction = [
        _Hypothesis(joint, [layout.drive(term).start + index for term in terms], False)
        for index, joint in enumerate(layout.joints)
    ]
    return (*bodies, *(each for each in friction if terms))


@dataclass(frozen=True)
class _Fit:
    """Least squares of a change: twice the log-likelihood ratio, the change ``(k,)`` and a root of its covariance."""

    ratio: float
    change: Array
    root: Array

    @classmethod
    def of(cls, columns: Array, errors: Array) -> "_Fit":
        """Of whitened columns and errors; directions that no equation shows stay zero."""
        scale = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        left, values, right = np.linalg.svd(columns / scale, full_matrices=False)
        kept = values > _INVISIBLE
        projected = left[:, kept].T @ errors
        root = (right[kept].T / values[kept]) / scale[:, None]
        return cls(float(projected @ projected), root @ projected, root)


@dataclass(frozen=True)
class _Instant:
    """Equations of one sample over the deviation of their errors: rows ``(k, p)``, errors ``(k,)``, velocity."""

    time: float
    rows: Array
    errors: Array
    velocity: Array
