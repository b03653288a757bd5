"""Adaptive tracking of a seven-joint arm: errors of four laws, as in [Lee2019] figs. 5.4 to 5.6, and processor time."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pinocchio as pin
from studies.simulated_panda import MODEL, START
from studies.tracking_batch import Batch, check_batch, track
from tables import FIGURES, machine, publish, table

from inertid_ros.adaptive_control.controller import AdaptationOptions, AdaptiveController, Law, Reference
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import from_mass_com_inertia, is_consistent, transform
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import example_urdf

SIGMAS, AMPLITUDES = tuple(0.05 * k for k in range(1, 9)), (0.4, 0.6, 0.8, 1.0, 1.2)
PERIOD_S, DT = 5.0, 1e-3
STEPS = int(PERIOD_S / DT)
SPEEDS = {Law.NONE: 0.0, Law.EUCLIDEAN: 5e-5, Law.PULLBACK: 1.0, Law.NATURAL: 1.0}
ROUNDS = 4  # with a payload
FLANGE = np.array([0.0, 0.0, 0.107])  # m in the frame of the last joint


def ellipsoid(mass: float, axes: Sequence[float], com: Sequence[float] = (0.0, 0.0, 0.0)) -> Array:
    """Homogeneous ellipsoid with these half axes [m] at the flange, in the frame of the last joint ``(10,)``."""
    x, y, z = np.square(axes)
    own = from_mass_com_inertia(mass, np.zeros(3), mass / 5 * np.diag([y + z, x + z, x + y]))
    return transform(own, np.eye(3), FLANGE + np.array(com))


PAYLOADS = {
    "sphere": ellipsoid(3.0, (0.05, 0.05, 0.05)),
    "ellipsoid 1": ellipsoid(3.0, (0.0323, 0.3227, 0.0323)),
    "ellipsoid 2": ellipsoid(3.0, (0.1375, 0.2165, 0.1082), (0.05, 0.04, -0.07)),
}


@dataclass(frozen=True)
class Run:
    """Errors ``(N, n)`` [rad], share of steps with consistent estimates, and seconds of each control step."""

    errors: Array
    consistent: float
    seconds: Array

    def rms(self, begin: float = 0.0, end: float = np.inf) -> float:
        """RMS error of all joints in a span of time [degrees]; infinite if tracking was lost."""
        rows = slice(int(begin / DT), None if np.isinf(end) else int(end / DT))
        part = self.errors[rows]
        if not (len(part) and np.isfinite(part).all()):
            return float("inf")
        return float(np.degrees(np.sqrt(np.mean(part**2))))


def run(
    model: RobotModel, truth: Array, first: Array, options: AdaptationOptions, amplitudes: Sequence[float],
    dt: float = DT,
) -> Run:  # fmt: skip
    """Track one period with each amplitude; physics by four steps of the articulated body algorithm per 1 ms."""
    tree = model.with_bodies(truth)
    data, controller = tree.createData(), AdaptiveController(model, first, options)
    reference_at, q, v = cosine(amplitudes), START.copy(), np.zeros_like(START)
    steps, errors, seconds, consistent = int(PERIOD_S * len(amplitudes) / dt), [], [], 0
    inner = dt / max(4, int(4 * dt / DT))
    for step in range(steps):
        reference = reference_at(step * dt)
        errors.append(q - reference.position)
        begun = time.process_time()
        torque = controller.step(q, v, reference, dt)
        seconds.append(time.process_time() - begun)
        consistent += bool(is_consistent(controller.bodies).all())
        for _ in range(int(round(dt / inner))):
            v = v + inner * pin.aba(tree, data, q, v, torque)
            q = q + inner * v
        if not np.isfinite(v).all() or np.abs(v).max() > 1e3:
            errors.append(np.full_like(q, np.inf))
            break
    return Run(np.array(errors), consistent / len(seconds), np.array(seconds))


def cosine(amplitudes: Sequence[float]) -> Callable[[float], Reference]:
    """One period with each amplitude, about the ready pose."""
    omega = 2 * np.pi / PERIOD_S

    def at(t: float) -> Reference:
        amplitude = amplitudes[min(int(t / PERIOD_S), len(amplitudes) - 1)] * np.ones_like(START)
        return Reference(
            START + amplitude * (np.cos(omega * t) - 1),
            -amplitude * omega * np.sin(omega * t),
            -amplitude * omega**2 * np.cos(omega * t),
        )

    return at


def batch_of(model: RobotModel, sigma: float, draws: int, index: int, options: AdaptationOptions) -> Batch:
    """Batch with one arm per draw."""
    first = [perturbed(model, sigma, np.random.default_rng([draw, index])) for draw in range(draws)]
    return Batch(model, model.with_bodies(model.consistent_body_prior), np.array(first), options, START)


def rms(squares: Array) -> Array:
    """RMS errors ``(N,)`` of all joints [degrees] from mean squares ``(steps, N)`` [rad^2]."""
    return np.degrees(np.sqrt(squares.mean(axis=0)))


def perturbed(model: RobotModel, sigma: float, rng: np.random.Generator) -> Array:
    """Bodies times factors of a normal distribution about one, cut off at sigma."""
    factors = 1 + np.clip(sigma * rng.standard_normal(len(model.body_prior)), -sigma, sigma)
    return model.consistent_body_prior * factors[:, None]


def shown(value: float) -> str:
    """Format an error for a table."""
    return "lost" if np.isinf(value) else f"{value:.3f}"


def means(values: Array) -> list[str]:
    """Formatted mean of every row."""
    return [shown(float(row.mean())) for row in values]


def main() -> None:
    model, draws = load_model(example_urdf(), MODEL), int(sys.argv[1]) if len(sys.argv) > 1 else 100
    truth, consistent = model.consistent_body_prior, dict.fromkeys(Law, 1.0)
    seconds: list[float] = []
    began, difference = time.perf_counter(), 0.0
    noise = {law: np.zeros((len(SIGMAS), draws)) for law in Law}
    rounds = {law: np.zeros((len(AMPLITUDES), draws)) for law in Law}
    for law, speed in SPEEDS.items():
        options = AdaptationOptions(speed=speed, law=law)
        for index, sigma in enumerate(SIGMAS):
            batch = batch_of(model, sigma, draws, index, options)
            squares, kept = track(batch, cosine((0.8,)), STEPS, DT)
            noise[law][index] = rms(squares)
            consistent[law] = min(consistent[law], float(kept.mean()))
        batch = batch_of(model, SIGMAS[-1], draws, len(SIGMAS), options)
        difference = max(difference, check_batch(batch, cosine(AMPLITUDES), range(min(3, draws)), DT))
        squares, kept = track(batch, cosine(AMPLITUDES), STEPS * len(AMPLITUDES), DT)
        rounds[law][:] = [rms(part) for part in np.split(squares, len(AMPLITUDES))]
        consistent[law] = min(consistent[law], float(kept.mean()))
        print(f"{law.value}: {time.perf_counter() - began:.0f} s", flush=True)
    payloads = {}
    guess = truth.copy()
    guess[-1] += ellipsoid(1.0, (0.1, 0.1, 0.1))
    for name, load in PAYLOADS.items():
        held = truth.copy()
        held[-1] += load
        for law, speed in SPEEDS.items():
            options = AdaptationOptions(speed=speed, law=law, adapted=(len(truth) - 1,))
            found = run(model, held, guess, options, (0.8,) * ROUNDS)
            seconds += found.seconds.tolist() if law is Law.NATURAL else []
            payloads[name, law] = [found.rms(PERIOD_S * k, PERIOD_S * (k + 1)) for k in range(ROUNDS)]
    robust = []
    for speed, dt in ((1.0, 1e-3), (1.0, 1e-2), (100.0, 1e-3), (100.0, 1e-2)):
        for law in (Law.PULLBACK, Law.NATURAL):
            options = AdaptationOptions(speed=speed, law=law, effort_limit=np.asarray(model.limits.effort))
            found = run(model, truth, perturbed(model, 0.4, np.random.default_rng(5)), options, (0.8,), dt)
            finite = bool(np.isfinite(found.errors).all())
            robust.append([f"{speed:g}", f"{1e3 * dt:g} ms", law.value, f"{100 * found.consistent:.0f} %", finite])
    _plot(noise, rounds)
    spent = 1e3 * np.array(seconds)
    by_noise = [[law.value, *means(noise[law]), f"{100 * consistent[law]:.0f} %"] for law in Law]
    by_round = [[law.value, *means(rounds[law])] for law in Law]
    by_load = [[name, law.value, *map(shown, own)] for (name, law), own in payloads.items()]
    header = ["law", *(f"σ = {sigma:g}" for sigma in SIGMAS), "consistent, worst run"]
    text = f"""## Adaptive tracking

Rigid bodies of the Panda, without friction, joint limits and effort limits. (example-robot-data does not contain the
WAM of [Lee2019]_ sec. 5.5.) λ = 10, K = λM, Λ = λ; steps of {1e3 * DT:g} ms; adaptation speeds as in the source
(Euclidean 5e-5, other laws 1). References are A (cos(2π t / 5 s) - 1) about the ready pose. All draws of a batch run in
parallel, with one step of the articulated body algorithm per {1e3 * DT:g} ms; the tables of loads and of large steps
take four steps. Check: three arms of each batch also run with separate controllers for 0.3 s; squared errors differ by
at most {difference:.1g} rad².
Tables list the mean RMS tracking error of all joints [degrees].

First estimates with an error of σ, one period with A = 0.8, {draws} draws (fig. 5.4):

{table(header, by_noise)}

σ = 0.4, one period with each amplitude, one after another (fig. 5.5):

{table(["law", *(f"A = {amplitude:g}" for amplitude in AMPLITUDES)], by_round)}

![Tracking errors of four laws](../figures/adaptive_control.svg)

Unknown loads of 3 kg at the flange. The first guess is a sphere of 1 kg and 0.1 m; only the last link adapts. Rounds
with A = 0.8 (fig. 5.6):

{table(["load", "law", *(f"round {k + 1}" for k in range(ROUNDS))], by_load)}

Steps and speeds of adaptation that are too large, with the effort limits of the arm, σ = 0.4:

{table(["speed", "step", "law", "consistent", "finite"], robust)}

A control step with adaptation takes {np.median(spent):.2f} ms (median; 99.9th percentile
{np.percentile(spent, 99.9):.2f} ms) of processor time, in Python.

{machine()}"""
    publish("adaptive-control", text)


def _plot(noise: dict[Law, Array], rounds: dict[Law, Array]) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2))
    for law in Law:
        axes[0].plot(SIGMAS, noise[law].mean(axis=1), marker="o", label=law.value)
        axes[1].plot(AMPLITUDES, rounds[law].mean(axis=1), marker="o", label=law.value)
    for axis, label in zip(axes, ("σ of the first estimate", "amplitude, round after round [rad]"), strict=True):
        axis.set(xlabel=label, ylabel="RMS tracking error [degrees]", yscale="log")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(FIGURES / "adaptive_control.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
