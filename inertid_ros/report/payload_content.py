"""Content of payload.json: a payload as plain data, and as robots take it."""

from typing import Any

from inertid_ros.adaptation.payload.payload import Payload, Quantity
from inertid_ros.core.arrays import Array

from .report_content import plain

PAYLOAD_FORMAT = 1
_ELEMENTS = ("xx", "xy", "xz", "yy", "yz", "zz")
_UR_ELEMENTS = ("xx", "yy", "zz", "xy", "xz", "yz")


def payload_content(payload: Payload) -> dict[str, Any]:
    """Mass [kg], centre of mass [m] and inertia about it [kg m^2], in the frame and axes of the tool frame."""
    content: dict[str, Any] = plain(
        {
            "format": PAYLOAD_FORMAT,
            "frame": payload.tool.name,
            "mass": _quantity(payload.mass),
            "com": dict(zip("xyz", map(_quantity, payload.com), strict=True)),
            "inertia": dict(zip(_ELEMENTS, map(_quantity, payload.inertia), strict=True)),
            "parameters": payload.parameters,
            "covariance": payload.covariance,
            "as_robots_take_it": as_robots_take_it(payload),
        }
    )
    return content


def as_robots_take_it(payload: Payload) -> dict[str, Any]:
    """The payload as services of robots and messages of ROS have it.

    - URScript's ``set_target_payload``: inertia xx, yy, zz, xy, xz, yz about the centre of mass; ``cog`` from the tool
      flange, whose frame is ``tool0`` in the URDFs of ur_description.
    - libfranka's ``Robot::setLoad`` and franka_msgs/SetLoad: inertia about the centre of mass, column after column;
      ``F_x_Cload`` from the flange, whose frame is ``panda_link8`` or ``fr3_link8`` in the URDFs of franka_description.
    - geometry_msgs/InertiaStamped: inertia about the centre of mass.
    """
    mass, com, inertia = payload.mass.value, payload.com_vector.tolist(), payload.inertia_matrix
    elements = dict(zip(_ELEMENTS, (each.value for each in payload.inertia), strict=True))
    ur = [elements[name] for name in _UR_ELEMENTS]
    return {
        "set_target_payload": {
            "m": mass,
            "cog": com,
            "inertia": ur,
            "script": f"set_target_payload({mass:.4f}, {_numbers(com)}, {_numbers(ur)})",
        },
        "setLoad": {
            "load_mass": mass,
            "F_x_Cload": com,
            "load_inertia": _column_major(inertia),
            "call": f"setLoad({mass:.4f}, {_numbers(com)}, {_numbers(_column_major(inertia))})",
        },
        "geometry_msgs/InertiaStamped": {
            "header": {"frame_id": payload.tool.name},
            "inertia": {
                "m": mass,
                "com": dict(zip("xyz", com, strict=True)),
                **{f"i{name}": value for name, value in elements.items()},
            },
        },
    }


def _quantity(quantity: Quantity) -> dict[str, Any]:
    return {
        "value": quantity.value,
        "standard_deviation": quantity.deviation,
        "interval": list(quantity.interval),
    }


def _column_major(matrix: Array) -> list[float]:
    values: list[float] = matrix.ravel(order="F").tolist()
    return values


def _numbers(values: list[float]) -> str:
    return "[" + ", ".join(f"{value:.5f}" for value in values) + "]"
