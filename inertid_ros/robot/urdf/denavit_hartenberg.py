"""Trees by modified Denavit-Hartenberg tables, as papers on robots give them ([Naveen2019]_ sec. 7.2)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError

from .xml_edits import inertial_lines


@dataclass(frozen=True)
class DhJoint:
    """One row: ``Rot_x(alpha) Trans_x(a) Rot_z(theta) Trans_z(d)`` from the parent's frame, after ``mount``.

    Attributes
    ----------
    parent : int
        Index of the link that it is mounted on; the base is 0, the link behind the first row 1, and so on.
    alpha, theta : float
        rad. The position of a revolute joint adds to theta.
    a, d : float
        m. The position of a prismatic joint adds to d.
    mount : tuple of float
        ``(3,)`` m; moves the row's start in the parent's frame, for arms that begin away from the base's origin.
    """

    parent: int
    alpha: float = 0.0
    a: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    prismatic: bool = False
    mount: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def rotation(self) -> Array:
        """``(3, 3)`` of the joint's frame in the parent's at position zero; right angles without rounding."""
        (ca, sa), (ct, st) = _cos_sin(self.alpha), _cos_sin(self.theta)
        return np.array([[ct, -st, 0.0], [st * ca, ct * ca, -sa], [st * sa, ct * sa, ca]])

    @property
    def translation(self) -> Array:
        """``(3,)`` m of its origin."""
        cosine, sine = _cos_sin(self.alpha)
        return np.array(self.mount) + np.array([self.a, -sine * self.d, cosine * self.d])


def dh_urdf(name: str, table: Sequence[DhJoint], bodies: Array, links: Sequence[str] = ()) -> str:
    """URDF text of a table: links ``L0``, ``L1``, ... and joints ``J1``, ``J2``, ... without limits.

    Parameters
    ----------
    bodies : ndarray, shape (1 + n, 10)
        Inertial parameters, the base first.
    links : sequence of str
        Names instead of ``L0``, ...

    Raises
    ------
    ModelError
        A row's parent does not come before it, or the numbers of bodies or names do not fit.
    """
    names = tuple(links) or tuple(f"L{index}" for index in range(len(table) + 1))
    if len(bodies) != len(table) + 1 or len(names) != len(table) + 1:
        raise ModelError(
            f"Denavit-Hartenberg table: {len(table)} rows need {len(table) + 1} bodies and names, {len(bodies)} and"
            f" {len(names)} given; the base comes first"
        )
    pairs = zip(names, bodies, strict=True)
    elements = [f'<link name="{link}">{"".join(inertial_lines(body))}</link>' for link, body in pairs]
    for index, row in enumerate(table, start=1):
        if not 0 <= row.parent < index:
            raise ModelError(f"Denavit-Hartenberg row {index}: parent {row.parent} does not come before it; reorder")
        joint_type = "prismatic" if row.prismatic else "revolute"
        elements.append(
            f'<joint name="J{index}" type="{joint_type}"><parent link="{names[row.parent]}"/>'
            f'<child link="{names[index]}"/>'
            f'<origin xyz="{_text(row.translation)}" rpy="{_text(pin.rpy.matrixToRpy(row.rotation))}"/>'
            f'<axis xyz="0 0 1"/><limit lower="{-np.pi!r}" upper="{np.pi!r}" velocity="1" effort="1000"/></joint>'
        )
    return f'<robot name="{name}">{"".join(elements)}</robot>'


def _cos_sin(angle: float) -> tuple[float, float]:
    quarters = angle / (np.pi / 2)
    if abs(quarters - round(quarters)) < 1e-12:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[round(quarters) % 4]
    return float(np.cos(angle)), float(np.sin(angle))


def _text(vector: Array) -> str:
    return " ".join(repr(float(value)) for value in vector)
