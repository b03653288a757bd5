"""Location of large residuals in time: at a change of load, during a contact, or without a known cause."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.findings import Finding, Severity, causes_of_symptom
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.equations import ForceEquations, dense_equations, load_torque
from inertid_ros.robot.model import RobotModel

from .estimate import Estimate

_COMPARED_SAMPLES = 2000  # over all recordings
_MIN_SIDE_SHARE = 0.05  # of the samples, on either side of a change
_MIN_EXPLAINED_SHARE = 0.5  # of the squared residuals; contacts and model errors leave more
_MIN_LEFT_SHARE = 0.1  # of the squared residuals; parameters that the prior holds explain the rest
_MIN_ERROR = 0.03  # error over torque, of a joint and of all joints; smaller errors do not matter
# In a contact, the first share of the squared residuals lies within at most the second share of the moving samples; a
# sample moves above the third share of RMS speed. Model errors spread over all motion.
_PASSING_SHARE, _MAX_PASSING_TIME, _MOVING_SHARE = 0.8, 0.4, 0.1
_MAX_MEAN_STEP = 2.0  # samples between moving samples of a contact: with more, the joint mostly rests
_MIN_SINGULAR_SHARE = 1e-9  # of normal equations; a motion does not determine combinations of parameters below it
_MOMENTS = 4  # mass and first moment of a load; its inertia has little effect


def check_change(estimate: Estimate, train: Sequence[Samples]) -> Iterator[Finding]:
    """Report a change of load at an end of the robot, or else a contact, that explains most residuals.

    At every instant over all recordings, a change of load is fitted together with all parameters, as parameters fitted
    to both sides of a change hide some of it. If no change explains the residuals of several recordings, one load is
    fitted before an instant of each recording and another after it, with the parameters of the estimate. If loads do
    not explain the residuals, but most residuals lie in a short time, a contact is reported.
    """
    model, equations = estimate.model, estimate.equations
    if not isinstance(equations, ForceEquations) or model.free:
        return
    parts, residual = _residuals(estimate, train)
    # Stiction of resting joints would resemble loads.
    fitted, torque = (np.concatenate([getattr(part, key) for part in parts]) for key in ("mask", "tau"))
    material = np.sum((fitted * residual) ** 2, axis=0) > _MIN_ERROR**2 * np.sum((fitted * torque) ** 2, axis=0)
    if not material.any():
        return
    noise = np.where(estimate.residual_deviation > 0, estimate.residual_deviation, np.inf)
    weight = fitted * material / noise
    residual = weight * residual
    severity = Severity.REJECT if estimate.train_relative_error > _MIN_ERROR else Severity.CARE
    columns = {body: weight[..., None] * _torque_of_moments(model, body, parts) for body in model.end_bodies}
    rows = _Rows(parts, train)
    changes = {
        body: _best_change_with_parameters(equations, parts, weight, of_load, residual)
        for body, of_load in columns.items()}
    if len(train) > 1 and max(explained for explained, _, _ in changes.values()) <= _MIN_EXPLAINED_SHARE:
        changes = {body: _best_changes(of_load, residual, rows.each) for body, of_load in columns.items()}
    body, (explained, row, change) = max(changes.items(), key=lambda item: item[1][0])
    if explained <= _MIN_EXPLAINED_SHARE:
        yield from _passing(residual, parts, rows, model.joint_names, severity)
    else:
        recording = rows.recording(row)
        since = "the start" if row == rows.each[recording].start else f"{rows.since_start(row):.1f} s"
        link, more = model.link_names[body], "more" if change[0] > 0 else "less"
        evidence = (
            f"from {since} on, {link} carries {abs(change[0]):.2g} kg {more} than before, which explains"
            f" {100 * explained:.0f} % of the squared errors")
        yield Finding.with_remedy("load_changed", severity, evidence, link, recording=parts[recording].name)


def check_unexplained(estimate: Estimate, train: Sequence[Samples], findings: Iterable[Finding]) -> Iterator[Finding]:
    """Locate the error by joint, time and motion if ``findings`` contain a large error but not its cause."""
    reasons = {finding.cause for finding in findings if finding.severity >= Severity.CARE}
    explanations = causes_of_symptom("effort_sign") | causes_of_symptom("position_unit")
    if not reasons & {"above_noise", "worse_than_nothing"} or reasons & explanations:
        return
    if not isinstance(estimate.equations, ForceEquations) or estimate.model.free:
        return
    parts, residual = _residuals(estimate, train)
    squares = residual**2
    joint = int(np.argmax(squares.sum(axis=0)))
    first, last = _shortest_run(squares[:, joint], 0.5)
    name, share = estimate.model.joint_names[joint], squares[:, joint].sum() / max(squares.sum(), 1e-300)
    rows = _Rows(parts, train)
    recording = rows.recording(first)
    last = min(last, rows.each[recording].stop - 1)
    position, speed = (np.concatenate([getattr(part, key) for part in parts]) for key in ("q", "v"))
    begin, end = rows.since_start(first), rows.since_start(last)
    low, high = np.percentile(position[first : last + 1, joint], (0, 100))
    fastest = np.abs(speed[first : last + 1, joint]).max()
    evidence = (
        f"{100 * share:.0f} % of the squared error is at {name}, half of it between {begin:.1f} and {end:.1f} s,"
        f" at positions from {low:.2f} to {high:.2f} and speeds of up to {fastest:.2g} (rad or m, s)")
    yield Finding.with_remedy("unexplained", Severity.CARE, evidence, name, recording=parts[recording].name)


class _Rows:
    """Rows of concatenated samples: recording of a row, and time of a row since the start of the recording."""

    def __init__(self, parts: Sequence[Samples], train: Sequence[Samples]) -> None:
        self._ends = np.cumsum([len(part) for part in parts])
        self.each = [slice(end - len(part), end) for end, part in zip(self._ends.tolist(), parts, strict=True)]
        self._since = np.concatenate([part.time - whole.time[0] for part, whole in zip(parts, train, strict=True)])

    def recording(self, row: int) -> int:
        return int(np.searchsorted(self._ends, row, side="right"))

    def since_start(self, row: int) -> float:
        return float(self._since[row])


def _residuals(estimate: Estimate, train: Sequence[Samples]) -> tuple[list[Samples], Array]:
    """Evenly chosen usable samples, and their residual torque ``(N, n)``, which is 0 for invalid values."""
    stride = max(1, sum(int(samples.usable.sum()) for samples in train) // _COMPARED_SAMPLES)
    parts = [samples.select(np.flatnonzero(samples.usable)[::stride]) for samples in train]
    rest = [part.valid * (part.tau - estimate.equations.predict(estimate.parameters, part)) for part in parts]
    return parts, np.concatenate(rest)


def _shortest_run(squares: Array, share: float) -> tuple[int, int]:
    """First and last row of the shortest run of squares ``(N,)`` that contains a share of their sum."""
    sums = np.append(0.0, np.cumsum(squares))
    ends = np.searchsorted(sums, sums + share * sums[-1])
    begins = np.flatnonzero(ends < len(sums))
    begin = int(begins[np.argmin(ends[begins] - begins)])
    return begin, int(ends[begin]) - 1


def _passing(
    residual: Array, parts: Sequence[Samples], rows: _Rows, joints: Sequence[str], severity: Severity
) -> Iterator[Finding]:
    """Report a contact if a short time contains most of a joint's squared residuals, from residuals ``(N, n)``."""
    states = [np.concatenate([getattr(part, key) for part in parts]) ** 2 for key in ("tau", "v")]
    torque, speed = (squares / np.maximum(squares.mean(axis=0), 1e-300) for squares in states)
    squares, spans = residual**2 / (1.0 + torque + speed), []  # model errors grow with torque and speed
    for joint in np.flatnonzero(residual.any(axis=0)).tolist():
        moving = np.flatnonzero((residual[:, joint] != 0) & (speed[:, joint] > _MOVING_SHARE**2))
        if not len(moving):
            continue
        of_joint = squares[moving, joint]
        first, last = _shortest_run(of_joint, _PASSING_SHARE)
        share, outside = (last + 1 - first) / len(moving), np.delete(of_joint, np.s_[first : last + 1])
        # A contact lasts; large errors at single instants or in short motions between rests are model errors.
        lasts = np.median(of_joint[first : last + 1]) > np.mean(outside)
        if share <= _MAX_PASSING_TIME and lasts and np.mean(np.diff(moving[first : last + 1])) < _MAX_MEAN_STEP:
            spans.append((share, joint, int(moving[first]), int(moving[last])))
    if not spans:
        return
    _, joint, begin, end = min(spans)
    recording = rows.recording(begin)
    others = [joints[other] for _, other, first, last in spans if other != joint and first <= end and last >= begin]
    evidence = f"{100 * _PASSING_SHARE:.0f} % of the squared errors of {', '.join([joints[joint], *others])} lie"
    last = min(end, rows.each[recording].stop - 1)
    evidence += f" between {rows.since_start(begin):.1f} and {rows.since_start(last):.1f} s"
    yield Finding.with_remedy("contact", severity, evidence, joints[joint], *others, recording=parts[recording].name)


def _torque_of_moments(model: RobotModel, body: int, parts: Sequence[Samples]) -> Array:
    """``(N, n, 4)`` torque of a load on a body, per unit of mass and of each component of the first moment."""
    loads = np.zeros((_MOMENTS, *model.body_prior.shape))
    loads[np.arange(_MOMENTS), body, np.arange(_MOMENTS)] = 1.0
    torques = [[load_torque(model, load, part) for load in loads] for part in parts]
    return np.concatenate([np.stack(columns, axis=2) for columns in torques])


def _best_change_with_parameters(
    equations: ForceEquations, parts: Sequence[Samples], weight: Array, of_load: Array, residual: Array
) -> tuple[float, int, Array]:
    """Like :func:`_best_changes`, for one change over all samples and the residuals that no parameters can explain."""
    columns, size, first = np.concatenate([of_load, residual[..., None]], axis=2), equations.model.layout.size, 0
    gram, cross = np.zeros((size, size)), np.zeros((len(columns), size, _MOMENTS + 1))
    for part in parts:
        for blocks in dense_equations(equations, replace(part, mask=np.ones_like(part.mask))):
            rows = slice(first, first := first + len(blocks[0][1]))
            for joint, (used, (torque, _)) in enumerate(zip(equations.columns, blocks, strict=True)):
                torque = weight[rows, joint, None] * torque
                gram[np.ix_(used, used)] += torque.T @ torque
                cross[rows, used] += torque[..., None] * columns[rows, joint, None]
    scale = 1 / np.sqrt(np.maximum(np.diagonal(gram), 1e-300))
    covariance = np.linalg.pinv(scale[:, None] * gram * scale, _MIN_SINGULAR_SHARE, hermitian=True)
    cross, products = scale[:, None] * cross, np.einsum("knp,knq->kpq", of_load, columns)
    whole, total = covariance @ cross[..., -1].sum(axis=0), float(np.sum(residual**2))
    left = max(total - float(whole @ cross[..., -1].sum(axis=0)), _MIN_LEFT_SHARE * total, 1e-300)
    # Sums of load and residuals after every sample, minus the part that a new fit of all parameters explains.
    cross, products = (sums.sum(axis=0) - np.cumsum(sums, axis=0) for sums in (cross[..., :-1], products))
    right = products[..., -1] - np.einsum("krp,r->kp", cross, whole)
    changes = _solved(products[..., :-1] - np.swapaxes(cross, 1, 2) @ (covariance @ cross), right)
    gain, side = np.einsum("kp,kp->k", changes, right), max(int(_MIN_SIDE_SHARE * len(residual)), 1)
    gain[:side] = gain[-side:] = 0.0
    best = int(np.argmax(gain))
    return float(gain[best]) / left, best + 1, changes[best]


def _best_changes(columns: Array, residual: Array, pieces: Sequence[slice]) -> tuple[float, int, Array]:
    """Share of squared residuals ``(N, n)`` that columns ``(N, n, 4)`` explain with factors that change once per piece.

    Also return the first row after the change in the best explained piece, and the change of the factors ``(4,)``
    there.
    """
    total, found = float(np.sum(residual**2)), [_best_change(columns[piece], residual[piece]) for piece in pieces]
    best = int(np.argmax([gain for gain, _, _ in found]))
    _, row, change = found[best]
    return sum(gain for gain, _, _ in found) / max(total, 1e-300), pieces[best].start + row, change


def _best_change(columns: Array, residual: Array) -> tuple[float, int, Array]:
    """Fit factors that change once; return explained squared residuals, first row after the change, and change."""
    gram = np.cumsum(np.einsum("knp,knq->kpq", columns, columns), axis=0)
    right = np.cumsum(np.einsum("knp,kn->kp", columns, residual), axis=0)
    side = max(int(_MIN_SIDE_SHARE * len(residual)), 1)
    rows = np.arange(side, len(residual) - side)
    if not len(rows):
        return 0.0, 0, np.zeros(_MOMENTS)
    before, after = _solved(gram[rows], right[rows]), _solved(gram[-1] - gram[rows], right[-1] - right[rows])
    gain = np.einsum("kp,kp->k", before, right[rows]) + np.einsum("kp,kp->k", after, right[-1] - right[rows])
    best = int(np.argmax(gain))
    return float(gain[best]), int(rows[best]) + 1, after[best] - before[best]


def _solved(gram: Array, right: Array) -> Array:
    """Least squares solutions ``(K, p)`` of normal equations ``(K, p, p)`` and ``(K, p)``."""
    ridge = 1e-9 * np.trace(gram, axis1=1, axis2=2)[:, None, None] * np.eye(gram.shape[1])
    return np.asarray(np.linalg.solve(gram + ridge + 1e-300 * np.eye(gram.shape[1]), right[..., None])[..., 0])
