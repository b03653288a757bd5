"""Criteria in four frames or bases.

An unknown payload on a SCARA, and a seven-joint arm ([Lee2019]_ tables 4.1 and 4.2).
"""

from collections.abc import Iterable

import numpy as np
from studies import scara, seven_joints
from studies.bases import SCALINGS
from tables import machine, publish, table

from inertid_ros.core.arrays import Array

STARTS, LONGER = 3, 60
SAME = 1e-6
# [Lee2019]_ table 4.1: RMS errors of mass [kg], p_x, p_y and r_z [mm].
PAYLOAD = {
    ("none", 1): (0.03, 0.78, 1.27, 5.24), ("none", 2): (0.03, 0.85, 1.56, 5.33),
    ("none", 3): (0.03, 0.70, 1.40, 5.14), ("none", 4): (0.03, 0.79, 1.30, 4.92),
    ("diagonal", 1): (1.53, 0.41, 317.90, 119.67), ("diagonal", 2): (0.04, 1.07, 1.39, 2.87),
    ("diagonal", 3): (0.79, 0.18, 19.11, 20.46), ("diagonal", 4): (0.07, 2.31, 2.19, 4.15),
    ("invariant", 1): (0.06, 0.60, 1.09, 1.56), ("random", 0): (0.04, 0.16, 149.82, 89.02),
}  # fmt: skip
# [Lee2019]_ table 4.2: parameter error; RMS torque [N m], then acceleration error, of joints 1-2, 3-4, 5-6, 7.
ARM = {
    ("none", 1): (2.967, 0.023, 0.021, 0.012, 0.007, 0.048, 0.295, 1.263, 20.843),
    ("none", 2): (2.757, 0.020, 0.018, 0.011, 0.006, 0.040, 0.234, 1.143, 18.366),
    ("none", 3): (2.356, 0.018, 0.016, 0.009, 0.006, 0.037, 0.226, 1.022, 16.678),
    ("none", 4): (2.724, 0.020, 0.017, 0.011, 0.006, 0.040, 0.243, 1.131, 18.934),
    ("diagonal", 1): (0.307, 0.011, 0.009, 0.002, 0.001, 0.026, 0.164, 0.288, 3.324),
    ("diagonal", 2): (1.705, 0.012, 0.011, 0.007, 0.004, 0.023, 0.120, 0.756, 12.361),
    ("diagonal", 3): (1.288, 0.013, 0.011, 0.006, 0.003, 0.027, 0.166, 0.617, 9.448),
    ("diagonal", 4): (1.986, 0.014, 0.012, 0.008, 0.005, 0.026, 0.147, 0.810, 13.938),
    ("invariant", 1): (0.184, 0.010, 0.008, 0.002, 0.0004, 0.025, 0.151, 0.275, 1.278),
    ("random", 0): (4.350, 0.070, 0.052, 0.019, 0.010, 0.146, 0.914, 2.140, 29.890),
}

REMARKS = {
    "xArm7": " As in the source, the invariant criterion has the smallest parameter error and the smallest acceleration"
    " error over all joints, because of the last joint with its light link.",
    "Panda": " The last link of this arm carries its hand, so all joints have similar acceleration errors. The"
    " invariant criterion has the smallest parameter error but not the smallest acceleration error.",
}


def cells(values: Iterable[float], digits: str = ".3g") -> list[str]:
    return [f"{value:{digits}}" for value in values]


def payload() -> str:
    study = scara.Study()
    starts = [study.start(seed) for seed in range(STARTS)]
    median = {("random", 0): np.median([study.errors(start) for start in starts], axis=0)}
    rows, difference = [], {}
    for scaling in SCALINGS:
        motions = {
            frame: [study.optimised(study.criterion(scaling, frame), start) for start in starts]
            for frame in scara.FRAMES
        }
        # Largest change of any number, with positions, velocities and accelerations in SI units.
        largest_of = [np.abs(motions[frame][k] - motions[1][k]).max() for frame in motions for k in range(STARTS)]
        difference[scaling] = float(max(largest_of))
        for frame, found in motions.items():
            median[scaling, frame] = np.median([study.errors(motion) for motion in found], axis=0)
    for (scaling, frame), errors in median.items():
        published = PAYLOAD.get((scaling, frame)) or PAYLOAD[scaling, 1]
        rows.append([scaling, frame or "", *cells(errors), *cells(published)])
    names = ("m [kg]", "p_x [mm]", "p_y [mm]", "r_z [mm]")
    own = (*names, "parameters", "acc. [rad/s²]")
    return (
        "### SCARA with payload, condition number ([Lee2019]_ table 4.1)\n\n"
        + table(["scaling", "frame", *own, *(f"published {name}" for name in names)], rows)
        + f"\n\nRMS errors of least squares in frame 3, of all parameters in the prior's metric, and of acceleration at"
        f" random states; medians over {STARTS} random starts; {scara.ITERATIONS} steps."
        " Motions from the same start"
        f" differ between frames by up to {difference['none']:.1g} (none), {difference['diagonal']:.1g} (diagonal) and"
        f" **{difference['invariant']:.1g}** (invariant; target: {SAME:g}) in rad, rad/s and rad/s². The source does"
        f" not state lengths, limits or frames. We use {scara.UPPER} m and {scara.FOREARM} m, {scara.LIMITS[0]} rad,"
        f" {scara.LIMITS[1]} rad/s, {scara.LIMITS[2]} rad/s², and frames at the elbow (1), on the forearm and turned"
        " by 45° (2), at the payload's centre (3) and next to it (4). As in the source, the invariant criterion is the"
        " most balanced: smallest error of all parameters in the prior's metric and of the radius of gyration r_z, but"
        " larger errors of the mass and of the acceleration (not given in the source for this robot). Unlike in the"
        " source, random motions that use the full limits perform well; a small condition number does not require large"
        " signals."
    )


def arm(name: str) -> str:
    study = seven_joints.Study(name)
    starts = [study.start(seed) for seed in range(STARTS)]
    median = {("random", 0): np.median([study.errors(start) for start in starts], axis=0)}
    rows, apart = [], {}
    for scaling in SCALINGS:
        motions = {
            base: [study.optimised(study.criterion(scaling, base), start) for start in starts]
            for base in seven_joints.BASES
        }
        apart[scaling] = largest(motions, study)
        for base, found in motions.items():
            median[scaling, base] = np.median([study.errors(motion) for motion in found], axis=0)
    longer = seven_joints.Study(name, LONGER)
    continued = {
        base: [longer.optimised(longer.criterion("invariant", base), start) for start in starts] for base in (1, 2)
    }
    for (scaling, base), errors in median.items():
        rows.append([scaling, base or "", *cells(errors), *cells(ARM.get((scaling, base)) or ARM[scaling, 1])])
    joints = ("1, 2", "3, 4", "5, 6", "7")
    header = ["scaling", "base", "parameters", *(f"torque {j}" for j in joints), *(f"acc. {j}" for j in joints)]
    published = [
        "published parameters",
        *(f"published torque {j}" for j in joints),
        *(f"published acc. {j}" for j in joints),
    ]
    return (
        f"### {name} in place of the KUKA iiwa, E-optimality ([Lee2019]_ table 4.2)\n\n"
        + table([*header, "acc. all", *published], rows)
        + f"\n\nExpected errors of least squares of {study.count} base parameters from 10 s at 1 kHz with 0.1 N m of"
        " noise: parameters in the prior's metric, RMS torque [N m] and acceleration [rad/s²] at random states; medians"
        f" over {STARTS} random starts. Positions of motions from the same start differ between bases by up to"
        f" {apart['none']:.1g} (none), {apart['diagonal']:.1g} (diagonal) and **{apart['invariant']:.1g}** rad"
        f" (invariant; target: {SAME:g}) after {seven_joints.ITERATIONS} steps, the invariant motions by"
        f" {largest(continued, study):.1g} rad after {LONGER}.{REMARKS[name]}"
    )


def largest(motions: dict[int, list[Array]], study: seven_joints.Study) -> float:
    """Largest difference of positions between bases, from the same start [rad]."""
    paths = {base: [study.path(motion) for motion in found] for base, found in motions.items()}
    return max(float(np.abs(found[k] - paths[1][k]).max()) for found in paths.values() for k in range(STARTS))


def main() -> None:
    text = (
        "## Excitation criteria in four frames or bases\n\n"
        "Each criterion is computed separately in every frame or base, and motions are improved from equal starts. The"
        " invariant criterion is equal in all frames except for rounding. A descent magnifies rounding errors about"
        " tenfold in every five to ten steps: in a long descent along flat valleys, rounding alone separates two"
        " motions of equal quality.\n\n"
    )
    tables = "\n\n".join([payload(), *(arm(name) for name in seven_joints.ARMS)])
    publish("excitation-invariance", f"{text}{tables}\n\n{machine()}")


if __name__ == "__main__":
    main()
