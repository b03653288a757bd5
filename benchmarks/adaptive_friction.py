"""Adaptation of friction with the bodies: the Panda with calibrated friction that is wrong by half.

    PYTHONPATH=benchmarks:test python benchmarks/adaptive_friction.py
"""

import numpy as np
import pinocchio as pin
from adaptive_control import DT, PERIOD_S, cosine, perturbed
from studies.simulated_panda import MODEL, START
from tables import machine, publish, table

from inertid_ros.adaptive_control.controller import AdaptationOptions, AdaptiveController, CalibratedDrives
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import example_urdf

ROUNDS, AMPLITUDE, SIGMA = 4, 0.8, 0.2
FRICTION_SHARE, TURNING_SPEED = 0.02, 0.005  # of the effort limit, viscous at the velocity limit, and Coulomb; rad/s
WEIGHTS, SHARES = (0.0, 0.5), (0.5, 1.5)


def body_error(model: RobotModel, bodies: Array) -> float:
    """Error of the torque of bodies ``(nb, 10)`` at random states, as a share of the true torque."""
    rng, shape = np.random.default_rng(0), (200, model.joints)
    q = rng.uniform(model.limits.lower, model.limits.upper, shape)
    v, a = 0.5 * model.limits.velocity * rng.uniform(-1, 1, shape), 2 * rng.normal(size=shape)
    truth = rigid_torque(model, model.consistent_body_prior, q, v, a)
    return float(np.linalg.norm(rigid_torque(model, bodies, q, v, a) - truth) / np.linalg.norm(truth))


def run(model: RobotModel, first: Array, share: float, weight: float) -> tuple[float, float, float, float]:
    """Final error of the bodies, RMS tracking error of the last round [degrees], share of consistent steps, and largest
    final error of Coulomb friction; the calibrated friction is ``share`` of the true friction."""
    layout, effort = model.layout, model.limits.effort
    friction = FRICTION_SHARE * np.array([effort / model.limits.velocity, effort])
    parameters = np.concatenate([first.ravel(), np.zeros(layout.size - layout.body_size)])
    drives = CalibratedDrives(model, parameters).with_friction(share * friction)
    controller = AdaptiveController(model, first, AdaptationOptions(speed=1.0, friction_weight=weight), drives)
    tree = model.with_bodies(model.consistent_body_prior)
    data, reference_at, q, v = tree.createData(), cosine((AMPLITUDE,) * ROUNDS), START.copy(), np.zeros(model.joints)
    errors, consistent, steps = [], 0, int(PERIOD_S * ROUNDS / DT)
    for step in range(steps):
        reference = reference_at(step * DT)
        errors.append(q - reference.position)
        torque = controller.step(q, v, reference, DT)
        consistent += bool(is_consistent(controller.bodies).all())
        for _ in range(2):
            resisted = torque - friction[0] * v - friction[1] * np.tanh(v / TURNING_SPEED)
            v = v + 0.5 * DT * pin.aba(tree, data, q, v, resisted)
            q = q + 0.5 * DT * v
    last = np.array(errors[-int(PERIOD_S / DT) :])
    assert controller.drives is not None
    off = float(np.abs(controller.drives.friction[1] / friction[1] - 1).max())
    return body_error(model, controller.bodies), float(np.degrees(np.sqrt(np.mean(last**2)))), consistent / steps, off


def main() -> None:
    model = load_model(example_urdf(), MODEL)
    rows = []
    for draw in range(3):
        first = perturbed(model, SIGMA, np.random.default_rng(draw))
        for share in SHARES:
            for weight in WEIGHTS:
                error, tracking, consistent, off = run(model, first, share, weight)
                before = body_error(model, first)
                rows.append([draw, f"{share:g}", f"{weight:g}" if weight else "friction fixed",
                    f"{100 * before:.1f} → {100 * error:.1f} %", f"{tracking:.3f}", f"{100 * off:.0f} %",
                    f"{100 * consistent:.0f} %"])
                print(*rows[-1], sep=" | ", flush=True)
    header = ["draw", "friction / truth", "weight", "torque error of the bodies", "tracking error [degrees]",
        "error of Coulomb friction", "consistent"]
    publish("adaptive-friction", f"""## Adaptation of friction

`benchmarks/adaptive_friction.py`, {machine()}. Panda with viscous friction of {100 * FRICTION_SHARE:g} % of the effort
limit at the velocity limit and as much Coulomb friction. Its calibrated friction is half as large, or half as large
again, and its bodies have errors of σ = {SIGMA:g}. Four rounds of the reference of the tables above; natural law with
the speed 1. The weight of friction is w of [Lee2019]_ eq. 5.3.43 (0.5 in sec. 5.6). Torque errors of the bodies are at
random states, the tracking error is the RMS of the last round, and the error of Coulomb friction is the error of the
worst joint at the end.

{table(header, rows)}""")


if __name__ == "__main__":
    main()
