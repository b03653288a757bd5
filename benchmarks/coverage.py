"""Coverage of stated intervals: simulated robots with known truth, and separate recordings of real arms."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from studies.coverage_cases import CLASSIC, LACKING, arm, bodies_from_prior, recording, states, truth, warming_quarters
from tables import datasets, machine, publish, table

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.robot import DRIVE_TERMS, CouplingOptions, RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, geodesic_distance
from inertid_ros.core.samples import Samples
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.identification.assessment.estimate import NORMAL_95, Estimate
from inertid_ros.identification.assessment.torque_confidence import sample_states, torque_confidence
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.solvers.coordinates import TYPICAL_PRIOR_SPREAD, prior_coordinates
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.model import RobotModel, load_model

NOISES, NOISE_REPEATS = (1e-3, 0.02, 0.2, 1.0, 5.0, 50.0), 40
REPEATS, WARMING_REPEATS = 100, 30


@dataclass(frozen=True)
class Held:
    """Truth inside the intervals of one estimate, and predicted and actual torque errors at random states."""

    base: Array
    bodies: Array
    drives: Array
    predicted: Array
    actual: Array


def held(estimate: Estimate, parameters: Array) -> Held:
    model, B = estimate.model, estimate.base.projection
    deviation = np.sqrt(np.diagonal(B @ estimate.covariance @ B.T))
    inside = (estimate.interval[:, 0] <= parameters) & (parameters <= estimate.interval[:, 1])
    anywhere = sample_states(model, 200)
    predicted, true = (ForceEquations(model).predict(x, anywhere) for x in (estimate.parameters, parameters))
    error = predicted - true
    return Held(
        np.abs(B @ (estimate.parameters - parameters)) < NORMAL_95 * deviation,
        inside[: model.layout.body_size],
        inside[model.layout.body_size :],
        torque_confidence(estimate, anywhere).deviation,
        np.sqrt(np.mean(error**2, axis=0)),
    )


def row(found: Sequence[Held]) -> list[str]:
    """Coverages [%], and ratio of predicted to actual RMS torque error: smallest and largest joint, and mean.

    The few repeats with the weakest excitation dominate the errors of all repeats together. Therefore a second ratio
    has the errors of each repeat in units of its own prediction.
    """
    shares = [
        100 * np.mean(np.concatenate([getattr(each, part) for each in found])) for part in ("base", "bodies", "drives")
    ]
    predicted, actual = (np.array([getattr(each, part) for each in found]) for part in ("predicted", "actual"))
    pooled = np.sqrt(np.mean(predicted**2, axis=0) / np.mean(actual**2, axis=0))
    each = 1 / np.sqrt(np.mean((actual / predicted) ** 2, axis=0))
    cells = [f"{share:.1f}" for share in shares]
    for joints in (pooled, each):
        # A joint counts by its own error, so that strong joints do not hide weak ones.
        cells += [f"{joints.min():.2f}–{joints.max():.2f}", f"{np.exp(np.mean(np.log(joints))):.2f}"]
    return cells


HEADER = [
    "base parameters",
    "single body parameters",
    "single drive parameters",
    "torque, by joint",
    "torque, all",
    "in units of each repeat, by joint",
    "in units of each repeat, all",
]


def levels() -> None:
    without = tuple(term for term in DRIVE_TERMS if term != "stribeck")
    near = float(np.mean([_prior_spread(arm(without), repeat) for repeat in range(NOISE_REPEATS)]))
    every, high = NOISES, NOISES[-1:]
    robots = (
        ("from the prior", without, bodies_from_prior, None, every),
        ("near the URDF", without, _point_masses, None, every),
        ("from the prior, with Stribeck friction", DRIVE_TERMS, bodies_from_prior, None, every),
        ("near the URDF, true prior spread", without, _point_masses, near, high),
        ("from the prior, friction as well", without, bodies_from_prior, None, high),
    )
    rows = []
    for noise in NOISES:
        for name, terms, drawn, prior_spread, noises in robots:
            if noise not in noises:
                continue
            model, options, found = arm(terms), IdentifyOptions(prior_spread=prior_spread or 0.0), []
            for repeat in range(NOISE_REPEATS):
                rng = np.random.default_rng(repeat)
                parameters = truth(model, rng, drawn(model, rng, TYPICAL_PRIOR_SPREAD))
                samples = states(model, parameters, noise, rng)
                if "friction as well" in name:
                    parameters, samples = _friction_from_prior(model, parameters, samples, noise, rng)
                found.append(held(identify(model, [samples], options), parameters))
            rows.append([f"{noise:g} N m", name, *row(found)])
    publish(
        "coverage",
        f"## Coverage of 95 % intervals\n\nTrue values within the stated intervals [%], {NOISE_REPEATS} repeats of 1000"
        " independent states with white noise. Robots are drawn from the prior (normal geodesic distances of the"
        " typical prior spread), or nearer to their URDF (point masses, `inertid perturb`). If Stribeck friction is"
        " part of the model, it is left out of the estimate unless it is significant. Torque: stated deviation of"
        " predicted torque at random states over its actual RMS error, for the joints and their geometric mean. The"
        " ratio is given for all repeats together (dominated by weak excitation), and in units of each repeat.\n\n"
        "Intervals are too wide in two cases. First, near the URDF with little data: the prior spread is unknown"
        f" (it is {near:.2f}; {TYPICAL_PRIOR_SPREAD:g} is typical). Point masses also change few directions much and"
        " the remaining directions hardly, but the prior spread is equal in all directions. This is the main reason, as"
        " the row with the true prior spread confirms. Second, friction below the noise: the interval of a"
        f" non-negative parameter begins at zero and contains all smaller friction. At {high[0]:g} N m its upper end is"
        " 4 to 20 times the true friction; if friction is drawn from its own prior, the intervals hold as stated.\n\n"
        + table(["torque noise", "robot", *HEADER], rows)
        + f"\n\n{machine()}",
    )


def _prior_spread(model: RobotModel, repeat: int) -> float:
    """Root mean square geodesic distance per direction between a robot with point masses and its URDF."""
    distances = geodesic_distance(_point_masses(model, np.random.default_rng(repeat), 0.0), model.consistent_body_prior)
    return float(np.sqrt(np.mean(distances**2) / BODY_PARAMETERS))


def _friction_from_prior(
    model: RobotModel, parameters: Array, samples: Samples, noise: float, rng: np.random.Generator
) -> tuple[Array, Samples]:
    """Parameters with drives drawn from their prior density (scale from the data), and samples."""
    positive = model.layout.non_negative
    scale = np.diagonal(prior_coordinates(model, compress(model, [samples])).matrix)
    parameters = parameters.copy()
    parameters[positive] = rng.exponential(scale[positive])
    return parameters, states(model, parameters, noise, rng)


def _point_masses(model: RobotModel, rng: np.random.Generator, _: float) -> Array:
    return perturb(model, rng)


def deficiencies() -> None:
    model, rows = arm(CLASSIC), []
    for lacking in LACKING:
        for repeats in (False, True):
            for prior_spread in (TYPICAL_PRIOR_SPREAD, 2 * TYPICAL_PRIOR_SPREAD)[: 2 if lacking == "nothing" else 1]:
                found = []
                for repeat in range(REPEATS):
                    rng = np.random.default_rng(repeat)
                    parameters = truth(model, rng, bodies_from_prior(model, rng, prior_spread))
                    samples = prepare(recording(model, parameters, rng, lacking, repeats), model)
                    found.append(held(identify(model, [samples]), parameters))
                wrong = " (bodies twice as far off)" if prior_spread > TYPICAL_PRIOR_SPREAD else ""
                rows.append([lacking + wrong, "repeats" if repeats else "does not repeat", *row(found)])
    publish(
        "coverage-prepared",
        f"## Coverage with filters and deficient models\n\nRecordings of 30 s with friction, {REPEATS}"
        " repeats each: white noise on positions and efforts, coloured by the low-pass, and one effect that the model"
        " lacks. The robot is drawn from the prior. Friction of drives that"
        " warm up is compared with its mean over this recording; the intervals are wider, because they hold for any"
        " part of a recording. Elastic joints deflect by about a thousandth of a radian, and their encoders are"
        " on the motor. Play is half a milliradian to either side, in gears before encoders on the motors, or in the"
        " couplings of encoders, which then rest after every reversal. Columns as above.\n\n"
        + table(["the model lacks", "the motion", *HEADER], rows)
        + f"\n\n{machine()}",
    )


def warming() -> None:
    """Coverage for drives that warm up: friction in each quarter of a recording, and mean friction."""
    model, rows = arm(CLASSIC), []
    for repeats in (False, True):
        mean, quarters = [], []
        for repeat in range(WARMING_REPEATS):
            rng = np.random.default_rng(repeat)
            parameters = truth(model, rng, bodies_from_prior(model, rng, TYPICAL_PRIOR_SPREAD))
            samples = prepare(recording(model, parameters, rng, "warming drives", repeats), model)
            estimate = identify(model, [samples])
            mean.append(held(estimate, parameters))
            for factor in warming_quarters():
                then = parameters.copy()
                then[model.layout.drive("viscous")] *= factor
                quarters.append(held(estimate, then))
        for name, found in (("mean of the recording", mean), ("mean of each quarter of it", quarters)):
            rows.append([name, "repeats" if repeats else "does not repeat", *row(found)])
    publish(
        "coverage-warming",
        "### Friction of drives that warm up\n\nViscous friction falls by half during a recording. Intervals by blocks"
        " hold for the friction at any time, as another recording may have it. For the mean over"
        f" the whole recording they are too wide. {WARMING_REPEATS} repeats, columns as above.\n\n"
        + table(["true friction", "the motion", *HEADER], rows)
        + f"\n\n{machine()}",
    )


def disjoint(folder: Path) -> None:
    """Differences of base parameters between fits to recordings without a common sample, over their deviations."""
    rows = []
    for name, model, parts in (_lwr4(folder / "kuka_lwr4"), _tx40(folder / "staubli_tx40")):
        estimates = [identify(model, [samples]) for samples in parts]
        shares = [between(*pair) for pair in combinations(estimates, 2)]
        for pair, (both, data) in zip(combinations(range(len(parts)), 2), shares, strict=True):
            rows.append([name, f"{pair[0] + 1} and {pair[1] + 1}", f"{both:.0f}", f"{data:.0f}"])
        if len(shares) > 1:
            rows.append([name, "all pairs", *(f"**{share:.1f}**" for share in np.mean(shares, axis=0))])
    publish(
        "coverage-recorded",
        "## Coverage between recordings\n\nShare of base parameters of two recordings without a common sample that"
        " differ by less than 1.96 deviations of their difference [%], for the estimates and for the data alone"
        " (weighted least squares, without the prior that both estimates share).\n\n"
        + table(["arm", "recordings", "estimates", "data alone"], rows)
        + f"\n\n{machine()}",
    )


def between(first: Estimate, second: Estimate) -> tuple[float, float]:
    """Coverage [%] of the differences of the estimates, and of fits to the data alone."""
    base = base_parameters_of_robot(first.model)
    B, shares = base.projection, []
    difference = B @ (first.parameters - second.parameters)
    variance = np.einsum("ij,jk,ik->i", B, first.covariance + second.covariance, B)
    free = variance > 0  # excludes parameters that both estimates fix
    shares.append(np.mean(np.abs(difference[free]) < NORMAL_95 * np.sqrt(variance[free])))
    values, variances = zip(*(_by_data(estimate, base.independent) for estimate in (first, second)), strict=True)
    scores = np.abs(values[0] - values[1]) / np.sqrt(variances[0] + variances[1])
    shares.append(np.mean(scores[np.isfinite(scores)] < NORMAL_95))
    return 100 * float(shares[0]), 100 * float(shares[1])


def _by_data(estimate: Estimate, columns: np.ndarray) -> tuple[Array, Array]:
    """Base parameters by weighted least squares with the noise of an estimate, and their variances."""
    noise = estimate.residual_deviation**2 * estimate.information.counts / estimate.effective_counts
    R, z = estimate.information.whitened(1 / np.sqrt(noise))
    scale = np.linalg.norm(R[:, columns], axis=0)
    scale[scale == 0] = 1.0
    inverse = np.linalg.pinv(R[:, columns] / scale, rcond=1e-9)
    variance = np.sum(inverse**2, axis=1) / scale**2
    return inverse @ z / scale, np.where(variance > 0, variance, np.nan)  # NaN without data


def _lwr4(folder: Path) -> tuple[str, RobotModel, list[Samples]]:
    model = load_model(folder / "kuka_lwr4.urdf")
    return "KUKA LWR4", model, [prepare(load_recording(folder / f"run{run}.npz"), model) for run in (1, 2, 3)]


def _tx40(folder: Path) -> tuple[str, RobotModel, list[Samples]]:
    wrist = {"wrist": CouplingOptions(("joint_5", "joint_6"), (1.0, 1.0))}
    model = load_model(folder / "tx40_mdh_modified.urdf", RobotOptions(couplings=wrist))
    samples = prepare(load_recording(folder / "run1_5khz.npz"), model)
    half = len(samples) // 2
    return "Stäubli TX40, halves", model, [samples.select(slice(0, half)), samples.select(slice(half, None))]


if __name__ == "__main__":
    data = datasets()
    if data is not None:
        disjoint(data)
    deficiencies()
    warming()
    levels()
