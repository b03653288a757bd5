"""Drive gains from two known loads, and a counterbalanced joint with a user-defined term."""

import logging
from dataclasses import replace

import numpy as np
from studies.simulated_panda import MODEL, SimulatedPanda, with_efforts
from tables import machine, publish, table

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.robot import LoadOptions, RobotOptions, TermOptions
from inertid_ros.core.arrays import Array
from inertid_ros.data.recording import Recording
from inertid_ros.identification.outcome import IdentificationOutcome
from inertid_ros.robot.model import load_model

SEEDS, ERROR = range(6), 0.3
LOADS = {
    "disk": LoadOptions(
        "panda_link8", 2.0, ("disk*",), com=(0.08, 0.0, 0.06), inertia=(0.004, 0.0, 0.0, 0.004, 0.0, 0.006)
    ),
    "bar": LoadOptions(
        "panda_link8", 3.0, ("bar*",), com=(-0.03, 0.09, 0.1), inertia=(0.02, 0.0, 0.0, 0.01, 0.0, 0.02)
    ),
}
STIFFNESS, ARM, ANCHOR = 2500.0, 0.1, 0.16  # N/m, and m from the axis of the joint, of a spring along the upper arm
JOINT = 1
SPRING = f"sin(q)/sqrt({ARM**2 + ANCHOR**2:.6g} - {2 * ARM * ANCHOR:.6g}*cos(q))"
TERMS = {  # terms of users with and without knowledge of the mechanism
    "formula of the spring": {"spring": TermOptions("panda_joint2", expressions=("sin(q)", SPRING))},
    "shape counterbalance": {"spring": TermOptions("panda_joint2", shape="counterbalance")},
    "term of an absent effect": {"drag": TermOptions("panda_joint4", shape="quadratic_viscous")},
}


def spring_torque(q: Array) -> Array:
    """Joint torque of a spring from ``ARM`` on the link to ``ANCHOR`` before the joint, slack at half its length."""
    length = np.sqrt(ARM**2 + ANCHOR**2 - 2 * ARM * ANCHOR * np.cos(q))
    return STIFFNESS * (1 - 0.5 * (ANCHOR - ARM) / length) * ARM * ANCHOR * np.sin(q)


def fit(
    arm: SimulatedPanda, train: list[Recording], held_out: list[Recording] = [], robot: dict = {}, **options  # noqa: B006
) -> IdentificationOutcome:
    """Calibrate with the whole offline path."""
    configured = RobotOptions(locked_joints=MODEL.locked_joints, loads=LOADS, **robot)
    configuration = Configuration(configured, identify=IdentifyOptions(**options))
    return calibrate(load_model(arm.given.urdf, configured), train, held_out, configuration)


def gains_of(seed: int) -> tuple[Array, Array, float, float]:
    """Relative errors and stated deviations of the gains; held-out errors with these gains and with true efforts."""
    arm = SimulatedPanda(seed, LOADS)
    right = [arm.record(name, index) for index, name in enumerate(("empty", "disk", "bar", "empty again"))]
    gains = 1 + np.random.default_rng(seed).uniform(-ERROR, ERROR, arm.true.joints)
    wrong = [with_efforts(recording, recording.effort / gains) for recording in right]
    outcome = fit(arm, wrong[:3], wrong[3:], drive_gains=True)
    exact = fit(arm, right[:3], right[3:])
    found = outcome.drive_gains
    errors = [each.validation.calibrated.relative_error for each in (outcome, exact)]
    return found.values / gains - 1, found.relative_deviation, *errors


def counterbalance_of(seed: int) -> list[tuple[str, float, float, bool]]:
    """Held-out errors of all joints and of the counterbalanced joint, and whether the term was kept, by terms."""
    arm = SimulatedPanda(seed, {})
    without = [arm.record(name, index) for index, name in enumerate(("first", "second"))]
    # The drive of a joint with a spring delivers the joint torque without the spring torque.
    sprung = [
        replace(each, effort=each.effort - spring_torque(each.position) * (np.arange(arm.true.joints) == JOINT))
        for each in without
    ]
    rows = []
    for name, recordings, terms in (
        ("no spring (smallest error)", without, {}),
        ("a spring, no term", sprung, {}),
        *((name, without if "drag" in terms else sprung, terms) for name, terms in TERMS.items()),
    ):
        outcome = fit(arm, recordings[:1], recordings[1:], {"terms": terms})
        errors, choices = outcome.validation.calibrated, outcome.estimate.term_choices
        kept = bool(choices) and choices[0].kept
        rows.append((name, float(np.linalg.norm(errors.rms_error)), float(errors.rms_error[JOINT]), kept))
    return rows


def main() -> None:
    logging.disable(logging.WARNING)
    found = [gains_of(seed) for seed in SEEDS]
    errors, deviations = (np.array([entry[k] for entry in found]) for k in (0, 1))
    held_out = np.array([entry[2:] for entry in found])
    joints = [f"joint {k + 1}" for k in range(errors.shape[1])]
    rows = [
        ["largest error of the gain [%]", *(f"{100 * value:.2f}" for value in np.abs(errors).max(axis=0))],
        ["median stated deviation [%]", *(f"{100 * value:.2f}" for value in np.median(deviations, axis=0))],
    ]
    inside = np.mean(np.abs(errors) < 1.96 * deviations)
    springs = [counterbalance_of(seed) for seed in SEEDS]
    table_rows = []
    for index, (name, *_) in enumerate(springs[0]):
        of_all, of_joint = (np.median([entry[index][k] for entry in springs]) for k in (1, 2))
        kept = sum(entry[index][3] for entry in springs)
        has_term = name in TERMS
        table_rows.append([name, f"{of_all:.3f}", f"{of_joint:.3f}", f"{kept} of {len(springs)}" if has_term else ""])
    text = f"""## Known loads, and a counterbalanced joint

A simulated Panda (MuJoCo, friction, noise) with a wrong URDF; random motions of 20 s; {len(SEEDS)} seeds, the whole
offline path with its defaults.

Gains of drives ([Gautier2014]_): drives with gain errors of up to {100 * ERROR:.0f} % report the efforts, with a new
draw for every joint and seed; three recordings, empty, with 2 kg, and with 3 kg in the hand (`robot.loads`,
`identify.drive_gains`).

{table(["", *joints], rows)}

{100 * inside:.0f} % of the gains lie within their 95 % intervals. Held-out torque error with the estimated gains
{100 * np.median(held_out[:, 0]):.2f} %, with the true efforts {100 * np.median(held_out[:, 1]):.2f} % (medians).

A spring of {STIFFNESS:g} N/m along the upper arm (`robot.terms`); RMS error on a held-out motion [N m], medians:

{table(["fitted", "all joints", "joint 2", "term kept"], table_rows)}

{machine()}"""
    publish("known-loads", text)


if __name__ == "__main__":
    main()
