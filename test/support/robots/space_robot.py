"""The space robot of [Naveen2019]_ sec. 6: a satellite with two arms of three joints and three reaction wheels.

Numbers are those of its tables 3 and 5. Its geometry is in a figure only and was recovered from table 5, which its
closed form reproduces to the last digit printed; table 5 also shows that the y-coordinate of the centre of mass of L2
is -0.04 m, where table 3 has -0.45 m.
"""

import numpy as np

from inertid_ros.config.robot import RobotOptions, WheelOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import from_mass_com_inertia
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.urdf.text import DhJoint, dh_urdf

QUARTER = np.pi / 2
TABLE = (
    DhJoint(0, mount=(0.7, 0.3, 0.9)),
    DhJoint(1, alpha=QUARTER, a=1.0),
    DhJoint(2, a=1.0),
    DhJoint(0, mount=(-0.3, 0.3, 0.9)),
    DhJoint(4, alpha=QUARTER, a=1.0),
    DhJoint(5, a=1.0),
)
# Table 3, L0 to L6: mass, centre of mass, inertia about it (xx, yy, zz, xy, yz, zx).
TRUE = (
    (2000.0, (0.2, 0.3, 0.4), (1200.0, 1200.0, 1200.0, 35.52, 40.45, 45.71)),
    (50.0, (0.6, 0.05, -0.07), (3.1, 1.89, 20.51, 1.9, 3.65, 3.9)),
    (40.0, (0.4, -0.04, -0.05), (1.15, 1.68, 18.67, 0.61, 1.75, 1.5)),
    (30.0, (0.7, 0.4, 0.3), (24.45, 28.56, 35.53, 9.78, 9.1, 10.23)),
    (50.0, (0.55, 0.04, -0.04), (1.85, 1.62, 17.05, 1.5, 2.25, 3.71)),
    (35.0, (0.45, 0.05, 0.05), (2.55, 1.84, 14.28, 2.9, 1.55, 1.27)),
    (60.0, (0.6, -0.5, -0.35), (12.24, 31.45, 23.77, 9.1, 8.52, 8.67)),
)
OFFSET = (
    (1500.0, (0.0, 0.0, 0.0), (1000.0, 1000.0, 1000.0, 25.0, 20.45, 65.71)),
    (30.0, (0.4, 0.0, 0.0), (2.0, 1.0, 10.0, 0.9, 2.65, 2.9)),
    (20.0, (0.7, 0.0, 0.0), (1.0, 1.0, 28.0, 1.2, 2.75, 2.5)),
    (50.0, (0.5, 0.2, 0.1), (14.0, 20.0, 20.0, 4.6, 3.1, 1.23)),
    (40.0, (0.4, 0.0, 0.0), (1.0, 2.0, 9.0, 1.0, 1.25, 6.71)),
    (25.0, (0.3, 0.0, 0.0), (1.0, 1.5, 19.0, 1.5, 0.55, 4.27)),
    (30.0, (0.5, 0.2, 0.2), (6.0, 20.0, 35.0, 15.0, 18.52, 4.67)),
)
# Table 5, true values: of the base (xx, yy, zz, xy, yz, zx, m, mcx, mcy, mcz), then what is left of these of each link.
TABLE_5 = (
    (2130.560, 2078.560, 1555.700, -96.630, -269.450, -148.890, 2265.000, 440.500, 679.500, 1033.000),
    (-2.525, 192.775, 7.400, 3.825, 6.000, 100.000, -4.500),
    (-36.866, 55.134, 1.250, 1.670, -6.700, 46.000, -1.600),
    (-14.010, 55.030, 1.380, 5.500, 3.930, 21.000, 12.000),
    (19.600, 256.670, -18.850, 2.330, 4.810, 122.500, 21.250),
    (-66.290, 81.455, 2.112, 1.462, 21.483, 75.750, 1.750),
    (-25.810, 60.370, 27.100, -1.980, 21.270, 36.000, -30.000),
)
TABLE_5_ORDER = ("Ixx", "Iyy", "Izz", "Ixy", "Iyz", "Ixz", "m", "mcx", "mcy", "mcz")
REGROUPED = ("Iyy", "m", "mcz")  # of every link behind a joint
WHEELS = ("wheel_x", "wheel_y", "wheel_z")
WHEEL_RANGE = 3 * np.pi  # rad per interval of one second; with 1 kg m^2 that is 18.8496 kg m^2/s at its peak
RANGE = np.deg2rad(0.8 * np.pi)  # 2.513 degrees per interval, where the ranges of Table 4 end


def bodies(table: tuple) -> Array:
    """``(7, 10)`` parameters of Table 3."""
    rows = [
        from_mass_com_inertia(mass, com, [[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]])
        for mass, com, (xx, yy, zz, xy, yz, zx) in table
    ]
    return np.array(rows)


def space_robot(table: tuple = TRUE) -> RobotModel:
    """The robot with the parameters of a table as its prior."""
    wheels = {name: WheelOptions(1.0, "L0", tuple(axis)) for name, axis in zip(WHEELS, np.eye(3), strict=True)}
    options = RobotOptions(drive_terms=(), gravity=(0.0, 0.0, 0.0), base="free", wheels=wheels)
    return load_model(dh_urdf("space_robot", TABLE, bodies(table)), options)


def limits() -> MotionLimits:
    """Of the joints. None are printed: here they turn by 180 degrees either way; peaks of velocity, 5.03 deg/s, and of
    acceleration, 15.8 deg/s^2, are those of the widest range of Table 4."""
    fast, wide = np.full(6, 2 * RANGE), np.full(6, np.pi)
    return MotionLimits(tuple(f"J{index}" for index in range(1, 7)), -wide, wide, fast, np.pi * fast, np.full(6, 1e3))


def table_5(values: dict[str, float]) -> list[float]:
    """Values by the names of independent columns, in the order of Table 5."""
    out = []
    for link in range(len(TABLE_5)):
        out += [values[f"L{link}.{name}"] for name in TABLE_5_ORDER if link == 0 or name not in REGROUPED]
    return out
