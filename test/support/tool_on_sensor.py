"""Random tools on a force-torque sensor, with Pinocchio's inverse dynamics of a free body as the truth."""

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from inertid_ros.data.recording import Recording
from inertid_ros.payload.force_sensor import identify_force_sensor, sensor_motion

GRAVITY = np.array([0.0, 0.0, -9.81])
NOISE = np.array([0.05, 0.05, 0.08, 0.003, 0.003, 0.002])


class Tool:
    """A random tool on a sensor, with a bias and a tilted mount."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        size = self.rng.uniform(0.03, 0.1, 3)
        self.mass, self.com = float(self.rng.uniform(0.3, 4.0)), self.rng.uniform(-0.1, 0.1, 3)
        self.inertia = self.mass * np.diag(np.roll(size, 1) ** 2 + np.roll(size, 2) ** 2)
        self.bias = self.rng.normal(size=6) * [5, 5, 10, 0.3, 0.3, 0.3]
        self.tilt = 0.03 * self.rng.normal(size=3)

    def record(self, rate_hz: float, seconds: float, base_hz: float, sign: float = 1.0) -> Recording:
        """The wrench is that of Pinocchio for a free body, along a motion given in closed form."""
        model = pin.Model()
        joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "sensor")
        model.appendBodyToJoint(joint, pin.Inertia(self.mass, self.com, self.inertia), pin.SE3.Identity())
        model.gravity.linear = GRAVITY
        data, mount = model.createData(), Rotation.from_rotvec(self.tilt)
        time, step = np.arange(0.0, seconds, 1 / rate_hz), 1e-4
        amplitude, phase = self.rng.uniform(0.4, 1.2, (3, 6)), self.rng.uniform(0, 6.3, (3, 6))
        hz = base_hz * np.array([1.0, 1.7, 2.3])[:, None]

        def moved(shift: float) -> list[pin.SE3]:
            values = np.sum(amplitude * np.sin(2 * np.pi * hz * (time + shift)[:, None, None] + phase), axis=1)
            turns = (Rotation.from_rotvec(values[:, 3:]) * mount).as_matrix()
            return [pin.SE3(turn, 0.1 * row[:3]) for turn, row in zip(turns, values, strict=True)]

        wrench, places = [], moved(0.0)
        for before, now, after in zip(moved(-step), places, moved(step), strict=True):
            backward, forward = (pin.log6(a.actInv(b)).vector / step for a, b in ((before, now), (now, after)))
            q = pin.SE3ToXYZQUAT(now)
            wrench.append(pin.rnea(model, data, q, 0.5 * (backward + forward), (forward - backward) / step))
        measured = sign * np.array(wrench) + self.bias + NOISE * self.rng.normal(size=(len(time), 6))
        unmounted = pin.SE3(mount.inv().as_matrix(), np.zeros(3))
        poses = [pin.SE3ToXYZQUAT(place * unmounted) for place in places]
        still = np.zeros((len(time), 1))
        channels = {"wrenches": {"ft": measured}, "base_pose": np.array(poses)}
        return Recording(("jaw",), time, still, still, name="turned", **channels)


def identified(*recordings: Recording):
    return identify_force_sensor([sensor_motion(each, "", each.base_pose, GRAVITY) for each in recordings])
