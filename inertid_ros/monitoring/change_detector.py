"""Detect a payload, a lost part or changed friction from the innovation of a calibrated robot.

The innovation ``e = tau - A x`` of a window of independent samples is normal with covariance ``C = S + A P A^T``.
``S`` is the noise; ``P`` is the uncertainty of the calibrated parameters, including drift of friction. A changed body
of a link, or changed friction of a joint, adds ``B d``: ``B`` are the columns of ``A`` that belong to this link or
joint, and ``d`` is the change of its parameters. Without a change, twice the logarithm of each generalised likelihood
ratio is chi-squared, for any motion; the length of ``d`` is its number of degrees of freedom ([Basseville1993]_ ch.
7).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

import numpy as np
import scipy

from inertid_ros.config.nodes import OnlineNodeOptions
from inertid_ros.core.arrays import MAD_TO_DEVIATION, Array, semidefinite_root
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.payload.equations import CalibratedRobot, friction_drift_root
from inertid_ros.robot.layout import ParameterLayout

_BODY_COLUMNS = 4  # mass and first moments, which gravity excites within a window
_CHANGED_FRICTION = ("viscous", "coulomb")
_MIN_WINDOW = 3  # independent samples
_MIN_SHOWN_VALUE = 1e-4  # singular value of unit columns; a window does not determine directions with a smaller value
_STICKING_SPEED = 0.02  # rad/s or m/s
_CALM_S = 2.0  # motion without an alarm after which a change counts as over
_MIN_NEW_CAUSE_S = 1.0  # another cause must persist this long; windows across the end of a change mislead


class Cause(Enum):
    """Cause of a change."""

    PAYLOAD = "payload"
    LOST_PART = "lost part"
    RISING_FRICTION = "rising friction"
    FALLING_FRICTION = "falling friction"


_BODY, _FRICTION = (Cause.PAYLOAD, Cause.LOST_PART), (Cause.RISING_FRICTION, Cause.FALLING_FRICTION)


@dataclass(frozen=True)
class Change:
    """A change of the robot.

    Attributes
    ----------
    time : time of the newest sample in the window [s].
    subject : name of the link or joint that changed.
    amount, deviation : change of mass [kg], or of friction torque at the mean speed of the window [N m or N], and its
        standard deviation.
    ratio, threshold : twice the logarithm of the likelihood ratio, and its threshold.
    settled : True if all samples of the window are later than the first alarm.
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
    """Detect changes of a calibrated robot in blocks of samples.

    With normal noise and a friction drift of ``options.drift``, the expected rate of false alarms is at most
    ``options.false_alarms_per_hour``.

    Attributes
    ----------
    tested : True if the last window held enough samples for a test; False at rest.
    """

    def __init__(self, robot: CalibratedRobot, options: OnlineNodeOptions | None = None) -> None:
        self._robot, self._options = robot, options or OnlineNodeOptions()
        drift_root = friction_drift_root(robot.layout, robot.parameters, self._options.drift)
        self._uncertainty_root = np.hstack([semidefinite_root(robot.covariance).T, drift_root])
        self._writer = robot.equations.writer()
        self._hypotheses = _hypotheses(robot.layout)
        self._window: deque[_Instant] = deque()
        self._skipped = 0
        self._alarm_time: float | None = None  # time of the first alarm
        self.tested = False

    def add(self, samples: Samples) -> Change | None:
        """Add a block; return the change in the window that ends with this block, if any.

        A changed robot gives an alarm at every block. Equations with a False ``mask`` are ignored. Blocks must come in
        the order of time.
        """
        self._take(samples)
        while self._window and self._window[-1].time - self._window[0].time > self._options.change_window_s + 1e-9:
            self._window.popleft()
        period = float(samples.time[-1] - samples.time[0]) * len(samples) / max(len(samples) - 1, 1)
        change = self._test(period)
        if change is None:
            self._alarm_time = None
        return change

    def _take(self, samples: Samples) -> None:
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
        deviation = np.hypot(robot.deviation, _stiction(robot, chosen))  # noise, and stiction at reversals
        errors = (chosen.tau - rows @ robot.parameters) / deviation
        rows /= deviation[..., None]
        for row, used in enumerate(chosen.mask):
            self._window.append(_Instant(float(chosen.time[row]), rows[row, used], errors[row, used], chosen.v[row]))

    def _test(self, period: float) -> Change | None:
        """Return the change that explains the window best, if any; ``period`` is the time between two tests [s]."""
        self.tested = False
        if len(self._window) < _MIN_WINDOW:
            return None
        A = np.concatenate([instant.rows for instant in self._window])
        e = np.concatenate([instant.errors for instant in self._window])
        if not len(e):
            return None
        self.tested = True
        # Whiten the innovation: its covariance is the identity (noise) plus the effect of uncertain parameters.
        uncertain = A @ self._uncertainty_root
        lower = np.linalg.cholesky(np.eye(len(e)) + uncertain @ uncertain.T)
        white = scipy.linalg.solve_triangular(lower, np.column_stack([A, e]), lower=True)
        white, error = white[:, :-1], white[:, -1]
        level = self._options.false_alarms_per_hour * period / 3600.0 / len(self._hypotheses)
        best, most_evidence = None, -np.inf
        for hypothesis in self._hypotheses:
            ratio, size, root = _fit(white[:, hypothesis.columns], error)
            threshold = _threshold(level, len(size))
            evidence = ratio - len(size) * np.log(len(e))
            if ratio > threshold and evidence > most_evidence:
                best, most_evidence = (hypothesis, *self._amount(hypothesis, size, root), ratio, threshold), evidence
        if best is None:
            return None
        hypothesis, amount, deviation, ratio, threshold = best
        now = self._window[-1].time
        self._alarm_time = now if self._alarm_time is None else self._alarm_time
        settled = self._window[0].time > self._alarm_time
        cause = hypothesis.causes[0] if amount >= 0 else hypothesis.causes[1]
        return Change(now, cause, hypothesis.subject, amount, deviation, ratio, threshold, settled)

    def _amount(self, hypothesis: "_Hypothesis", size: Array, root: Array) -> tuple[float, float]:
        """Return the change of mass, or of friction torque at the mean speed, and its standard deviation."""
        direction = np.eye(len(size))[0]
        if hypothesis.causes == _FRICTION:
            joint = self._robot.layout.joints.index(hypothesis.subject)
            speed = np.mean([abs(instant.velocity[joint]) for instant in self._window])
            factors, terms = {"viscous": speed, "coulomb": 1.0}, self._robot.layout.drive_terms
            direction = np.array([factors[term] for term in _CHANGED_FRICTION if term in terms])
        return float(direction @ size), float(np.linalg.norm(direction @ root))


@lru_cache(maxsize=64)
def _threshold(level: float, freedom: int) -> float:
    return float(scipy.stats.chi2.isf(level, freedom))


@dataclass(frozen=True)
class _Hypothesis:
    """Possible change of a link or joint: its columns, and the causes of a positive and of a negative change."""

    subject: str
    columns: list[int]
    causes: tuple[Cause, Cause]


def _hypotheses(layout: ParameterLayout) -> list[_Hypothesis]:
    starts = (layout.body(index).start for index in range(len(layout.links)))
    bodies = (_Hypothesis(link, [*range(start, start + _BODY_COLUMNS)], _BODY)
        for link, start in zip(layout.links, starts, strict=True))
    terms = [layout.drive(term).start for term in _CHANGED_FRICTION if term in layout.drive_terms]
    joints = enumerate(layout.joints if terms else ())
    return [*bodies, *(_Hypothesis(joint, [start + k for start in terms], _FRICTION) for k, joint in joints)]


def _fit(columns: Array, errors: Array) -> tuple[float, Array, Array]:
    """Fit a change by least squares: twice the log-likelihood ratio, the change ``(k,)``, a root of its covariance.

    The change is zero in directions that the whitened equations do not determine.
    """
    scale = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    left, values, right = np.linalg.svd(columns / scale, full_matrices=False)
    shown = values > _MIN_SHOWN_VALUE
    projected = left[:, shown].T @ errors
    root = (right[shown].T / values[shown]) / scale[:, None]
    return float(projected @ projected), root @ projected, root


@dataclass(frozen=True)
class _Instant:
    """Equations of one sample, divided by the standard deviation of its errors: rows ``(k, p)``, errors ``(k,)``."""

    time: float
    rows: Array
    errors: Array
    velocity: Array


def with_stream_noise(robot: CalibratedRobot, blocks: Sequence[Samples]) -> CalibratedRobot:
    """Return a robot whose residual deviation is raised to the residuals of the causal filter.

    A causal filter passes more noise than the zero-phase filter of the calibration. The blocks come from a stream of
    the robot as calibrated. Samples near reversals are left out, as their friction is uncertain.

    Raises
    ------
    IdentificationError
        A channel has no equation.
    """
    errors = np.concatenate([block.tau - robot.equations.predict(robot.parameters, block) for block in blocks])
    usable = np.concatenate([block.mask & (_stiction(robot, block) < 0.5 * robot.deviation) for block in blocks])
    if not usable.any(axis=0).all():
        raise IdentificationError("stream: a joint never slides; give recordings in which all joints move")
    sizes = [np.median(np.abs(errors[rows, channel])) for channel, rows in enumerate(usable.T)]
    return replace(robot, deviation=np.maximum(robot.deviation, MAD_TO_DEVIATION * np.array(sizes)))


def _stiction(robot: CalibratedRobot, samples: Samples) -> Array:
    """Standard deviation ``(N, c)`` of friction if a joint may stick: uniform within +- Coulomb friction."""
    layout = robot.layout
    if samples.undecimated is None or "coulomb" not in layout.drive_terms:
        return np.zeros_like(samples.tau)
    share = samples.undecimated.filtered(lambda v: (np.abs(v) < _STICKING_SPEED).astype(float))
    return np.asarray(np.clip(share, 0.0, 1.0) * robot.parameters[layout.drive("coulomb")] / np.sqrt(3.0))


class ChangeHistory:
    """Decide which alarms to report, as the detector repeats its alarm at every block of a changed robot.

    A change is reported at its first alarm, when it has settled, and later when another cause has persisted for a
    second. An unchanged robot is reported at the first tested block, and after a change when the robot has moved for
    two seconds without an alarm.

    Attributes
    ----------
    current : last reported change; None while the robot is as calibrated.
    since : time of the first alarm of the current change [s].
    time : time of the newest sample at the last report [s].
    """

    def __init__(self) -> None:
        self.current: Change | None = None
        self.since = self.time = 0.0
        self._calm_s, self._reported = 0.0, False
        self._other: Change | None = None  # first alarm with another cause

    def add(self, change: Change | None, tested: bool, block: Samples) -> bool:
        """Take the detector's change and ``tested`` for a block; return True if :attr:`current` must be reported."""
        report = self._alarm(change) if change is not None else tested and self._calm(block)
        if report:
            self.current, self.time, self._reported = change, float(block.time[-1]), True
        return report

    def _calm(self, block: Samples) -> bool:
        self._other = None
        self._calm_s += float(block.time[-1] - block.time[0])
        return not self._reported or (self.current is not None and self._calm_s >= _CALM_S)

    def _alarm(self, change: Change) -> bool:
        self._calm_s = 0.0
        current = self.current
        if current is None:
            self.since = change.time
            return True
        if change.settled != current.settled:
            return change.settled
        if not change.settled:
            return False
        if _same(current, change):
            self._other = None
        elif self._other is None or not _same(self._other, change):
            self._other = change
        return self._other is not None and change.time - self._other.time >= _MIN_NEW_CAUSE_S


def _same(one: Change, other: Change) -> bool:
    return (one.cause, one.subject) == (other.cause, other.subject)
