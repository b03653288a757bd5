"""Do stated intervals hold? Two hundred synthetic repeats at several noise levels."""

from dataclasses import replace

import numpy as np
from tables import machine, publish, table

from inertid_ros.core.samples import Samples
from inertid_ros.identification.identify import identify
from inertid_ros.regressors.force_equations import predict_torque
from inertid_ros.robot.bodies.layout import NON_NEGATIVE_TERMS
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.perturbation import perturb

REPEATS, SAMPLES, NOISES = 200, 1000, (0.02, 0.2, 1.0, 5.0)


def arm() -> RobotModel:
    """Five links of a tapering arm with skew axes."""
    links, joints = ['<link name="base"/>'], []
    for i, axis in enumerate(("0 0 1", "0 1 0", "1 0 0", "0 1 0", "0 0 1")):
        mass, side = 5 / (1 + i), 0.1
        moment = mass * (0.3**2 + side**2) / 12
        links.append(
            f'<link name="link{i}"><inertial><origin xyz="0.02 0.01 0.15"/><mass value="{mass}"/>'
            f'<inertia ixx="{moment}" iyy="{moment}" izz="{mass * side**2 / 6}" ixy="0" ixz="0" iyz="0"/>'
            "</inertial></link>"
        )
        joints.append(
            f'<joint name="joint{i}" type="revolute"><parent link="{f"link{i - 1}" if i else "base"}"/>'
            f'<child link="link{i}"/><origin xyz="0.05 0 0.3"/><axis xyz="{axis}"/>'
            '<limit lower="-3" upper="3" velocity="3" effort="100"/></joint>'
        )
    return load_model(f'<robot name="arm">{"".join(links + joints)}</robot>')


def experiment(model: RobotModel, noise: float, rng: np.random.Generator) -> tuple[Samples, np.ndarray]:
    """Samples at random states of a robot drawn from the prior, and its true parameters."""
    layout = model.layout
    drives = [
        rng.exponential(0.3, model.joints) if term in NON_NEGATIVE_TERMS else rng.normal(size=model.joints)
        for term in layout.drive_terms
    ]
    truth = np.concatenate([perturb(model, rng).ravel(), *drives])
    q, v, a = rng.uniform(-3, 3, (SAMPLES, model.joints)), *rng.normal(size=(2, SAMPLES, model.joints))
    every = np.ones(q.shape, dtype=bool)
    samples = Samples(0.01 * np.arange(SAMPLES), q, v, a, np.zeros_like(q), every, every[:, 0])
    tau = predict_torque(model, truth, samples)
    return replace(samples, tau=tau + noise * rng.normal(size=tau.shape)), truth


def main() -> None:
    model = arm()
    rows = []
    for noise in NOISES:
        base, bodies, drives = [], [], []
        for repeat in range(REPEATS):
            samples, truth = experiment(model, noise, np.random.default_rng(repeat))
            estimate = identify(model, [samples])
            error, projection = estimate.parameters - truth, estimate.base.projection
            deviation = np.sqrt(np.diagonal(projection @ estimate.covariance @ projection.T))
            base.append(np.abs(projection @ error) < 1.96 * deviation)
            inside = np.abs(error) < 1.96 * estimate.standard_deviation
            bodies.append(inside[: model.layout.body_size])
            drives.append(inside[model.layout.body_size :])
        level = f"{noise:g} N m"
        rows.append([level, *(f"{100 * np.mean(inside):.1f}" for inside in (base, bodies, drives))])
    header = ["torque noise", "base parameters", "standard parameters of bodies", "friction and rotors"]
    text = (
        f"## Coverage of 95 % intervals\n\nShare of true values [%] within the stated intervals, {REPEATS} repeats of a"
        " robot drawn from the prior (point masses added to every link).\n\n"
    )
    publish("coverage", text + table(header, rows) + f"\n\n{machine()}")


if __name__ == "__main__":
    main()
