"""The robot as described and as calibrated, compared with the simulated truth."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from inertid_ros.cli.printing.output import number, print_table
from inertid_ros.cli.printing.report_tables import print_errors
from inertid_ros.config.robot import RobotOptions
from inertid_ros.config.yaml_files import load_configuration
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError
from inertid_ros.data.files.bag_reading import read_bag
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.robot.bodies.inertial_parameters import geodesic_distance, mass_com_inertia
from inertid_ros.robot.configured_model import model_options
from inertid_ros.robot.model import RobotModel, load_model

_WAIT_S = 10.0


@dataclass(frozen=True)
class Comparison:
    """The robot as described, and the truth.

    Attributes
    ----------
    given : RobotModel
        As the simulator describes it.
    truth : ndarray, shape (nb, 10)
        True inertial parameters in its link order.
    """

    given: RobotModel
    truth: Array

    @classmethod
    def receive(cls, robot: RobotOptions) -> "Comparison":
        """Receive both from the simulator's latched topics; ``robot`` are the options of the model.

        Raises
        ------
        InertidError
            It does not publish them.
        """
        import rclpy
        from std_msgs.msg import String

        from inertid_ros.msg import InertialParameters
        from inertid_ros.ros.parameter_messages import from_inertial_parameters
        from inertid_ros.ros.qos import LATCHED

        description: list[String] = []
        truth: list[InertialParameters] = []
        rclpy.init()
        try:
            node = rclpy.create_node("demo")
            node.create_subscription(String, "robot_description", lambda message: description.append(message), LATCHED)
            node.create_subscription(
                InertialParameters, "simulator/true_parameters", lambda message: truth.append(message), LATCHED
            )
            end = time.monotonic() + _WAIT_S
            while not (description and truth):
                if time.monotonic() > end:
                    raise InertidError("the simulator does not publish its truth; see its log")
                rclpy.spin_once(node, timeout_sec=0.1)
            node.destroy_node()
        finally:
            rclpy.try_shutdown()
        model = load_model(description[0].data, model_options(robot))
        return cls(model, from_inertial_parameters(truth[0]).bodies)

    def content(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Return everything of the table as plain data."""
        given, calibrated = self.given.body_prior, self.calibrated(report)
        sets = {"truth": self.truth, "given": given, "calibrated": calibrated}
        links = []
        for index, name in enumerate(self.given.link_names):
            entry: dict[str, Any] = {"name": name}
            for label, bodies in sets.items():
                mass, com, _ = mass_com_inertia(bodies[index])
                distance = float(geodesic_distance(bodies[index], self.truth[index]))
                entry[label] = {"mass": float(mass), "com": com.tolist(), "geodesic_distance_to_truth": distance}
            links.append(entry)
        section = "validation" if "validation" in report else "train"
        return {
            "relative_error": report[section]["relative_error"],
            "prior_relative_error": report["prior"][section]["relative_error"],
            "links": links,
        }

    def calibrated(self, report: Mapping[str, Any]) -> Array:
        """Return the inertial parameters ``(nb, 10)`` of a report."""
        bodies = {link["name"]: link["parameters"] for link in report["links"]}
        return np.array([bodies[name] for name in self.given.link_names])


def print_comparison(comparison: Comparison, report: Mapping[str, Any]) -> None:
    """Print torque errors, and every link against the truth: as described, then calibrated."""
    print()
    print_errors(report)
    rows = []
    content = comparison.content(report)
    for link in content["links"]:
        true, given, calibrated = link["truth"], link["given"], link["calibrated"]
        shift = [1e3 * float(np.linalg.norm(np.subtract(x["com"], true["com"]))) for x in (given, calibrated)]
        rows.append(
            (
                link["name"],
                number(true["mass"]),
                f"{number(given['mass'])} → {number(calibrated['mass'])}",
                f"{shift[0]:.1f} → {shift[1]:.1f}",
                f"{given['geodesic_distance_to_truth']:.3f} → {calibrated['geodesic_distance_to_truth']:.3f}",
            )
        )
    header = ("link", "true mass [kg]", "mass [kg]", "CoM off by [mm]", "geodesic distance to the truth")
    print_table("Links against the simulated truth, URDF as given → calibrated", header, rows)
    before, after = content["prior_relative_error"], content["relative_error"]
    print(f"held-out torque error {100 * before:.2f} % → {100 * after:.2f} %, {before / after:.1f} times smaller")
    smallest = min(link["min_pseudo_inertia_eigenvalue"] for link in report["links"])
    print(f"every link physically consistent: {'yes' if smallest > 0 else 'NO'} (smallest eigenvalue {smallest:.2g})")


def held_out_configurations(comparison: Comparison, configuration: Path, work: Path) -> Array:
    """Return the configurations ``(N, nq)`` of the last recording, which was not fitted."""
    options = load_configuration(configuration)
    bag = sorted((work / "recordings").iterdir())[-1]
    samples = prepare(read_bag(bag, options.topics, comparison.given.joint_names), comparison.given, options.prepare)
    return samples.q[samples.usable]


def describe_centre_of_mass(comparison: Comparison, report: Mapping[str, Any], configurations: Array) -> str:
    """Return a line on the whole robot's centre of mass against the truth, over configurations ``(N, nq)``."""
    true, given, calibrated = (
        centres_of_mass(comparison.given, bodies, configurations)
        for bodies in (comparison.truth, comparison.given.body_prior, comparison.calibrated(report))
    )
    before, after = (float(np.sqrt(np.mean(np.sum((c - true) ** 2, axis=1)))) for c in (given, calibrated))
    mass = comparison.calibrated(report)[:, 0].sum()
    return (
        f"centre of mass off by {1e3 * before:.1f} mm → {1e3 * after:.2f} mm on held-out data,"
        f" {before / after:.1f} times closer; total mass {mass:.2f} kg of {comparison.truth[:, 0].sum():.2f} kg"
    )


def centres_of_mass(model: RobotModel, bodies: Array, configurations: Array) -> Array:
    """Return the centres of mass ``(N, 3)`` in the world [m] of a robot with inertial parameters ``(nb, 10)``."""
    kinematics = model.with_bodies(bodies)
    data = kinematics.createData()
    return np.array([pin.centerOfMass(kinematics, data, q).copy() for q in configurations])
