"""Whether motions are long and rich enough: all training recordings of a robot together."""

from collections.abc import Sequence

import numpy as np

from inertid_ros.core.causes.table import remedy_for
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.samples import Samples
from inertid_ros.robot.model import RobotModel

_SHORTEST_S = 2.0  # no arm goes there and back through its own range faster, at speeds at which friction has a sign
_TRAVERSES = 1.2  # of its range; a joint that has come back has two, one that has gone one way has one
_HARDLY = 0.01  # of the range between its limits (of a turn without): drives repeat to a hundredth of that
_PLANAR = 2  # joints; with more, most of what the bodies do is not seen on one line
_PROPORTIONAL = 0.98  # share of a joint's velocity power that another joint's velocity predicts


def check_motion(recordings: Sequence[Samples], model: RobotModel) -> tuple[Finding, ...]:
    """Findings on the motion of all recordings that are fitted together.

    Parameters
    ----------
    recordings : sequence of Samples
        Prepared samples.
    model : RobotModel
        The robot.

    Returns
    -------
    tuple of Finding
        ``short_recording``, ``little_motion`` and ``lockstep``. A free base is not checked: its own motion excites
        the bodies, too.
    """
    rows = [samples.usable for samples in recordings]
    if model.free or not any(kept.any() for kept in rows):
        return ()
    q = np.concatenate([samples.q[kept] for samples, kept in zip(recordings, rows, strict=True)])
    v = np.concatenate([samples.v[kept] for samples, kept in zip(recordings, rows, strict=True)])
    seconds = [float(np.median(np.diff(samples.time))) for samples in recordings]
    # The same short piece recorded twice is no longer motion: the longest of all recordings counts.
    travelled = np.max(
        [
            np.abs(samples.v[kept]).sum(axis=0) * step
            for samples, kept, step in zip(recordings, rows, seconds, strict=True)
        ],
        axis=0,
    )
    duration = sum(kept.sum() * step for kept, step in zip(rows, seconds, strict=True))
    ranges = np.ptp(q, axis=0)
    names = np.array(model.joint_names)
    traverses = travelled / np.maximum(ranges, 1e-12)
    span = model.limits.upper - model.limits.lower
    span = np.where(np.isfinite(span) & (span > 0), np.minimum(span, 2 * np.pi), 2 * np.pi)
    hardly = ranges < _HARDLY * span
    findings = []
    name = recordings[0].name if len(recordings) == 1 else ""
    if duration < _SHORTEST_S or len(recordings) == 1 and (~hardly).any() and traverses[~hardly].max() < _TRAVERSES:
        evidence = f"{duration:.2g} s of motion, in which no joint goes through its range more than"
        evidence += f" {traverses[~hardly].max(initial=0.0):.1f} times"
        remedy = remedy_for("short_recording")
        findings.append(Finding("short_recording", Severity.REFUSE, evidence, remedy, (), name))
    if hardly.any():
        which = tuple(map(str, names[hardly]))
        evidence = f"{', '.join(which)} moves by {', '.join(f'{x:.2g}' for x in ranges[hardly])} rad or m"
        remedy = remedy_for("little_motion")
        findings.append(Finding("little_motion", Severity.CARE, evidence, remedy, which, name))
    moving = v[:, ~hardly] - v[:, ~hardly].mean(axis=0)
    power = np.sqrt(np.sum(moving**2, axis=0))
    alike = np.abs((moving / np.where(power > 0, power, 1.0)).T @ (moving / np.where(power > 0, power, 1.0)))
    np.fill_diagonal(alike, 0.0)
    proportional = alike**2 > _PROPORTIONAL
    together = proportional.any(axis=1) if len(alike) else np.zeros(0, dtype=bool)
    if together.any():
        which = tuple(map(str, names[~hardly][together]))
        one_line = len(together) > 1 and bool(proportional[0, 1:].all())
        where = ", so that the whole motion lies on one line" if one_line else ""
        evidence = f"velocities of {', '.join(which)} are proportional to one another{where}"
        severity = Severity.CARE if one_line and len(together) > _PLANAR else Severity.NOTICE
        findings.append(Finding("lockstep", severity, evidence, remedy_for("lockstep"), which, name))
    return tuple(findings)
