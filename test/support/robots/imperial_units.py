"""The same robot and the same motion, in pounds and feet."""

from dataclasses import replace

import numpy as np
from lxml import etree

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.samples import Samples
from inertid_ros.robot.model import RobotModel, load_model

POUND, FOOT = 1 / 0.45359237, 1 / 0.3048  # pounds per kilogram, feet per metre


def in_pounds_and_feet(model: RobotModel, samples: Samples) -> tuple[RobotModel, Samples, np.ndarray]:
    """Model, samples, and factors ``(p,)`` from SI parameters to those of the new units."""
    root = etree.fromstring(model.urdf.encode())
    for origin in root.iter("origin"):
        origin.set("xyz", " ".join(repr(float(x) * FOOT) for x in origin.get("xyz").split()))
    for mass in root.iter("mass"):
        mass.set("value", repr(float(mass.get("value")) * POUND))
    for inertia in root.iter("inertia"):
        for key, value in inertia.attrib.items():
            inertia.set(key, repr(float(value) * POUND * FOOT**2))
    x, y, z = (component * FOOT for component in model.options.gravity)
    options = RobotOptions(drive_terms=model.layout.drive_terms, gravity=(x, y, z))
    converted = load_model(etree.tostring(root, encoding="unicode"), options)
    length = np.where(model.axes[:, :3].any(axis=1), FOOT, 1.0)
    effort = POUND * FOOT**2 / length
    drives = {"rotor_inertia": effort / length, "viscous": effort / length, "stiffness": effort / length}
    factors = np.concatenate(
        [
            np.tile(POUND * FOOT ** np.array([0.0, 1, 1, 1, 2, 2, 2, 2, 2, 2]), model.joints),
            *(drives.get(term, effort) for term in model.layout.drive_terms),
        ]
    )
    return (
        converted,
        replace(samples, q=samples.q * length, v=samples.v * length, a=samples.a * length, tau=samples.tau * effort),
        factors,
    )
