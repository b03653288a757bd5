"""Tells a payload, a lost part or rising friction from noise, by the innovation of a calibrated robot.

The innovation ``e = tau - A x`` of a window of independent samples is normal with covariance ``C = S + A P A^T``:
noise, and what calibration and drift of friction leave unknown. A change of the body of a link, or of the friction of a
joint, adds ``B d`` for columns ``B`` of ``A``. Twice the logarithm of the generalised likelihood ratio of each is
chi-squared with as many degrees of freedom as ``d`` has while nothing changes, whatever the motion
([Basseville1993]_ ch. 7).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.qr import semidefinite_root
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.residuals import MAD_TO_DEVIATION
from inertid_ros.payload.equations import CalibratedRobot, FrictionDrift
from inertid_ros.robot.layout import ParameterLayout

_BODY_COLUMNS = 4  # mass and first moments: what gravity shows within a window
_FRICTION = ("viscous", "coulomb")
_FEWEST = 3  # independent samples of a window
_INVISIBLE = 1e-4  # singular value, relative to unit columns, below which a window does not show a direction
_SLOW = 0.02  # rad/s or m/s; a slower joint may as well stick
_CALM_S = 2.0  # of motion without an alarm, after which the robot is as it was calibrated
_OTHERWISE_S = 1.0  # for which a settled change is explained otherwise; a window that holds its end explains it badly


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


def with_stream_noise(robot: CalibratedRobot, blocks: Sequence[Samples]) -> CalibratedRobot:
    """The robot with the residuals that a causal filter leaves of it, where nothing has changed.

    A filter without delay lets less noise through than a causal one. Recordings of the calibration, put through the
    causal filter, show its noise; reversals, where friction is uncertain, do not count.

    Parameters
    ----------
    blocks : sequence of Samples
        Of a stream of the robot as it was calibrated.

    Raises
    ------
    IdentificationError
        A channel has no equation.
    """
    errors = np.concatenate([each.tau - robot.equations.predict(robot.parameters, each) for each in blocks])
    kept = np.concatenate([each.mask & (_stiction(robot, each) < 0.5 * robot.deviation) for each in blocks])
    if not kept.any(axis=0).all():
        raise IdentificationError("stream: a joint never slides; give recordings in which all joints move")
    sizes = [np.median(np.abs(errors[own, channel])) for channel, own in enumerate(kept.T)]
    return replace(robot, deviation=np.maximum(robot.deviation, MAD_TO_DEVIATION * np.array(sizes)))


def error_deviation(robot: CalibratedRobot, samples: Samples) -> Array:
    """``(N, c)`` standard deviation of the error of every equation: noise, and stiction at reversals."""
    return np.asarray(np.hypot(robot.deviation, _stiction(robot, samples)))


def _stiction(robot: CalibratedRobot, samples: Samples) -> Array:
    """``(N, c)`` standard deviation of friction for the share of time in which a joint hardly slides: it may then be
    anything up to Coulomb friction in either direction."""
    layout = robot.layout
    if samples.undecimated is None or "coulomb" not in layout.drive_terms:
        return np.zeros_like(samples.tau)
    share = samples.undecimated.filtered(lambda v: (np.abs(v) < _SLOW).astype(float))
    return np.asarray(np.clip(share, 0.0, 1.0) * robot.parameters[layout.drive("coulomb")] / np.sqrt(3.0))


class ChangeHistory:
    """Follows what a detector finds.

    A change is told when it is found first, when it is settled, and when it is then explained otherwise for a second;
    that the robot is as it was calibrated, with the first block that shows it, and two seconds of motion after the last
    alarm.

    Attributes
    ----------
    current : Change or None
        Told last; None while the robot is as it was calibrated.
    since : float
        When it was found first [s].
    time : float
        Of the newest sample when something was told last [s].
    """

    def __init__(self) -> None:
        self.current: Change | None = None
        self.since = self.time = 0.0
        self._calm_s, self._told = 0.0, False
        self._other: Change | None = None  # that explains the current one otherwise, when it was found first

    def add(self, found: Change | None, tested: bool, block: Samples) -> bool:
        """Take what a detector found with a block; whether :attr:`current` is to be told.

        Parameters
        ----------
        found : Change or None
            By the detector.
        tested : bool
            Whether its window held enough to find something.
        block : Samples
            The block.
        """
        told = self._calmed(block) if found is None and tested else found is not None and self._alarmed(found)
        if told:
            self.current, self.time, self._told = found, float(block.time[-1]), True
        return told

    def _calmed(self, block: Samples) -> bool:
        self._other = None
        self._calm_s += float(block.time[-1] - block.time[0])
        return not self._told or (self.current is not None and self._calm_s >= _CALM_S)

    def _alarmed(self, found: Change) -> bool:
        self._calm_s = 0.0
        current = self.current
        if current is None:
            self.since = found.time
            return True
        if found.settled != current.settled:
            return found.settled
        return found.settled and self._explained_otherwise(current, found)

    def _explained_otherwise(self, current: Change, found: Change) -> bool:
        if _same(current, found):
            self._other = None
        elif self._other is None or not _same(self._other, found):
            self._other = found
        return self._other is not None and found.time - self._other.time >= _OTHERWISE_S


def _same(one: Change, other: Change) -> bool:
    return (one.cause, one.subject) == (other.cause, other.subject)
