"""The whole path in numbers: a wrong URDF, an exciting motion, a simulated arm, identification, a held-out motion."""

from dataclasses import replace

import attrs
import numpy as np
import pytest
from support.robots.quick_plans import FINGERS, PANDA_START, panda, panda_limits

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.config.simulation import SimulationOptions
from inertid_ros.core.inertial_parameters import geodesic_distance, is_consistent
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.excitation.planning.planner import plan_excitation
from inertid_ros.identification.assessment.gate import Verdict
from inertid_ros.identification.assessment.validation import validate
from inertid_ros.robot.body_changes import perturb, write_urdf
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.simulated_robot import SimulatedRobot, simulate

pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")

OPTIONS = ExcitationOptions(duration_s=10.0, starts=8, improved=1, iterations=20)


def test_calibration_of_a_wrong_urdf(robots):
    truth = panda(robots)
    wrong = write_urdf(truth, perturb(truth, np.random.default_rng(0)))
    given = load_model(wrong, RobotOptions(locked_joints=FINGERS))
    limits = panda_limits(given)
    plan = plan_excitation(given, limits, PANDA_START, OPTIONS)
    other = plan_excitation(given, limits, PANDA_START, attrs.evolve(OPTIONS, seed=7, improved=0))
    robot = SimulatedRobot(truth, SimulationOptions(seed=0), start=PANDA_START + 0.1)
    recordings = [simulate(robot, motion) for motion in (plan, other)]
    outcome = calibrate(given, recordings[:1], recordings[1:])
    assert outcome.gate.verdict is Verdict.USE, outcome.message
    estimate, held_out = outcome.estimate, prepare(recordings[1], given)
    validation = validate(estimate, [held_out])
    assert validation.passed
    assert validation.calibrated.relative_error < 0.2 * validation.prior.relative_error
    assert is_consistent(estimate.bodies).all()
    # What no model explains is friction about standstill: the truth itself does no better.
    terms = estimate.layout.drive_terms
    drives = [robot.drives.term(term) for term in terms]
    exact = replace(estimate, parameters=np.concatenate([robot.bodies.ravel(), *drives]))
    assert validation.calibrated.relative_error < 1.1 * validate(exact, [held_out]).calibrated.relative_error
    # In ten seconds, viscous and Coulomb friction are told apart less well than their sum at working speeds is found.
    viscous, coulomb = (estimate.parameters[estimate.layout.drive(term)] for term in ("viscous", "coulomb"))
    for speed in (0.4, 0.8, 1.2):
        wanted = robot.drives.viscous * speed + robot.drives.coulomb
        assert viscous * speed + coulomb == pytest.approx(wanted, rel=0.1)
    assert np.isfinite(geodesic_distance(estimate.bodies, truth.body_prior)).all()
