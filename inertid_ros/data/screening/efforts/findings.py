"""What is said of a cause that explains efforts: its evidence and its remedy, with the option that cures it."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.causes.table import remedy_for
from inertid_ros.core.findings import Finding, Severity

from .equations import EffortFit
from .hypotheses import Hypothesis

_LESS = 0.9  # of the error as recorded; more would not convince
_ALIKE = np.log(2.0)  # factors of joints that lie within this of a power of ten are a unit, not currents
_GRAVEST = {"coupling": Severity.REJECT, "counterbalance": Severity.REJECT, "undeclared_load": Severity.NOTICE}
_MASSES, _GAIN = 2.0, 3.0  # factors nearer to one are rather, or may as well be, errors of the URDF's masses


def finding_of(
    hypothesis: Hypothesis,
    fits: tuple[EffortFit, EffortFit],
    counted: NDArray[np.bool_],
    names: Sequence[str],
) -> Finding:
    """The finding of a cause, as grave as it can be: no coupling, gain or load makes a recording worthless.

    Parameters
    ----------
    hypothesis : Hypothesis
    fits : tuple of EffortFit
        As recorded, and without the cause.
    counted : ndarray of bool, shape (n,)
        Joints whose efforts were compared.
    names : sequence of str
        Of the joints.
    """
    about = list(hypothesis.joints) or np.flatnonzero(counted).tolist()
    subjects = (hypothesis.link,) if hypothesis.link else tuple(names[joint] for joint in hypothesis.joints)
    before, after = (float(np.sqrt(np.mean(fit.share[about] ** 2))) for fit in fits)
    cause, what, remedy = _SAID[hypothesis.cause](hypothesis, [names[joint] for joint in about])
    gravest = _GRAVEST.get(cause, Severity.REFUSE)
    if cause == "effort_current" and _largest(hypothesis.amount) < _GAIN:
        gravest = Severity.CARE if _largest(hypothesis.amount) > _MASSES else Severity.NOTICE
    if after < _LESS * before:
        evidence = f"{what}: error of {100 * before:.0f} % as recorded, {100 * after:.0f} % without"
    else:  # what it explains is in the bodies
        evidence = f"{what}; as recorded, only bodies unlike the URDF's explain them"
    return Finding(cause, gravest, evidence, remedy, subjects)


def _sign(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    remedy = remedy_for("effort_sign", scales=_mapping(dict.fromkeys(names, -1.0)))
    whose = names[0] if hypothesis.joints else "all joints"
    return "effort_sign", f"effort of {whose} opposes what the URDF predicts", remedy


def _exchange(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    what = f"efforts of {names[0]} and {names[1]} fit one another's motion"
    return "effort_exchange", what, remedy_for("effort_exchange", one=names[0], other=names[1])


def _joints(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    what = f"positions and efforts of {names[0]} and {names[1]} fit one another's place in the URDF"
    return "joint_exchange", what, remedy_for("joint_exchange", one=names[0], other=names[1])


def _factors(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    factors = np.array(hypothesis.amount)
    known = np.isfinite(factors)
    power = 10.0 ** np.round(np.log10(np.median(np.abs(factors[known]))))
    if power != 1.0 and np.mean(np.abs(np.log(factors[known] / power)) < _ALIKE) > 0.75 and power in (1e3, 1e-3):
        return _unit(hypothesis, names)
    shown = dict(zip(names, 1 / factors[known], strict=False)) if len(names) == known.sum() else {}
    listed = ", ".join(f"{factor:.3g}" for factor in factors[known])
    what = f"efforts are {listed} times the torques that the URDF predicts"
    return "effort_current", what, _gains(_mapping(shown) if shown else "")


def _unit(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    power = float(10.0 ** np.round(np.log10(np.nanmedian(np.abs(hypothesis.amount)))))
    unit = {1e3: "N mm or mN m", 1e-3: "kN m"}.get(power)
    if unit is None:
        what = f"efforts are about {power:g} times the torques that the URDF predicts, which is no unit of torque"
        return "effort_current", what, _gains(f"{1 / power:g}")
    what = f"efforts are {power:g} times the torques that the URDF predicts (they look like {unit})"
    return "effort_unit", what, remedy_for("effort_unit", scales=_mapping(dict.fromkeys(names, 1 / power)))


def _gains(scales: str) -> str:
    return remedy_for("effort_current", "estimated" if scales else "", scales=scales)


def _compensated(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    return "gravity_compensated", "efforts lack the torque of gravity", remedy_for("gravity_compensated")


def _gravity(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    vector = "[" + ", ".join(f"{round(x, 2) + 0.0:g}" for x in hypothesis.amount) + "]"
    what = f"efforts fit a gravity of {vector} in the root frame"
    return "gravity_direction", what, remedy_for("gravity_direction", vector=vector)


def _delay(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    milliseconds = 1e3 * hypothesis.amount[0]
    order = "after" if milliseconds > 0 else "before"
    what = f"efforts are stamped about {abs(milliseconds):.0f} ms {order} the motion"
    return "delay", what, remedy_for("delay")


def _coupling(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    what = f"efforts of {names[0]} and {names[1]} follow the {'sum' if hypothesis.amount[1] > 0 else 'difference'} of"
    ratios = ", ".join(f"{ratio:g}" for ratio in hypothesis.amount)
    drive = f"{{wrist: {{joints: [{', '.join(names)}], ratios: [{ratios}]}}}}"
    return "coupling", f"{what} their speeds", remedy_for("coupling", drive=drive)


def _counterbalance(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    what = f"a torque that follows the position of {names[0]} acts beside the URDF's bodies"
    return "counterbalance", what, remedy_for("counterbalance", joint=names[0])


def _offset(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    turn = hypothesis.amount[0]
    what = f"gravity of {names[0]} fits positions that are {-turn:g} degrees further"
    return "position_offset", what, remedy_for("position_offset", turn=f"{turn:g}", joint=names[0])


def _degrees(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    return "position_unit", "efforts fit positions in degrees", remedy_for("position_unit", "by_effort")


def _load(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    what = f"{hypothesis.link} carries about {hypothesis.amount[0]:.2g} kg more than in the URDF"
    return "undeclared_load", what, remedy_for("undeclared_load")


def _mapping(values: dict[str, float]) -> str:
    return "{" + ", ".join(f"{name}: {value:.3g}" for name, value in values.items()) + "}"


def _largest(factors: Sequence[float]) -> float:
    """Largest factor or its inverse."""
    size = np.abs(np.log(np.abs(np.array(factors))))
    return float(np.exp(np.nanmax(size)))


_SAID: dict[str, Callable[[Hypothesis, list[str]], tuple[str, str, str]]] = {
    "effort_sign": _sign,
    "effort_exchange": _exchange,
    "joint_exchange": _joints,
    "effort_current": _factors,
    "effort_unit": _unit,
    "gravity_compensated": _compensated,
    "gravity_direction": _gravity,
    "delay": _delay,
    "coupling": _coupling,
    "counterbalance": _counterbalance,
    "undeclared_load": _load,
    "position_offset": _offset,
    "position_unit": _degrees,
}
