"""FIGAROH's optimal trajectory, in an interpreter with FIGAROH: ``figaroh_motion.py FOLDER SEED``; prints JSON last.

A cubic spline through five waypoints two seconds apart. The first waypoint is given; IPOPT finds the remaining
waypoints with forward differences. FIGAROH's classes set up the problem, without collision pairs.
"""

import json
import logging
import sys
import time
from pathlib import Path

import numpy as np
import pinocchio as pin
from figaroh.optimal.base_optimal_trajectory import BaseOptimalTrajectory, BaseTrajectoryIPOPTProblem
from figaroh.optimal.config import COLLISION_DEFAULTS

WAYPOINTS, RATE, SEGMENT = 5, 10, 2.0


class Trajectory(BaseOptimalTrajectory):
    """FIGAROH's trajectory problem with options from this module instead of a file."""

    def __init__(self, robot: pin.RobotWrapper, joints: list[str]) -> None:
        self.robot, self.model, self.active_joints = robot, robot.model, joints
        self.trajectory_config = {
            "n_wps": WAYPOINTS, "freq": RATE, "t_s": SEGMENT, "soft_lim": 0.05, "max_attempts": 30,
            "max_iterations": 200, "segment_attempts": 1, **COLLISION_DEFAULTS,
        }
        ids = list(range(robot.model.nv))
        self.identif_config = {
            "has_friction": False, "has_actuator_inertia": False, "has_joint_offset": False,
            "is_joint_torques": True, "is_external_wrench": False, "force_torque": None,
            "act_Jid": [robot.model.getJointId(name) for name in joints], "act_idxq": ids, "act_idxv": ids,
            "ts": 1.0 / RATE, "q_limit_def": 1.57,
        }
        self.logger = logging.getLogger(__name__)
        self.results = {name: [] for name in ("T_F", "P_F", "V_F", "A_F", "iteration_data")}

    def create_ipopt_problem(self, *arguments):
        return BaseTrajectoryIPOPTProblem(self, *arguments)


def main() -> None:
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    np.random.seed(seed)  # noqa: NPY002 - FIGAROH draws its waypoints from it
    model = pin.buildModelFromUrdf(str(folder / "robot.urdf"))
    robot = pin.RobotWrapper(model, pin.GeometryModel(), pin.GeometryModel())
    robot.geom_model = robot.collision_model
    task = Trajectory(robot, list(model.names)[1:])
    begin, wall = time.process_time(), time.perf_counter()
    task.initialize()
    task.solve(stack_reps=1)
    seconds, elapsed = time.process_time() - begin, time.perf_counter() - wall
    if not task.results["T_F"]:
        print(json.dumps({"found": False, "cpu": seconds}))
        return
    spline = task.CB
    result = {
        "found": True,
        "cpu": seconds,
        "wall": elapsed,
        "iterations": int(task.results["iteration_data"][0]["iterations"][-1]),
        "solver": float(task.results["iteration_data"][0]["solve_time"]),
        "own": float(task.results["iteration_data"][0]["obj_values"][-1]),
        "time": np.ravel(task.results["T_F"][0]).tolist(),
        **{name: np.asarray(task.results[f"{key}_F"][0]).tolist() for name, key in zip("qva", "PVA", strict=True)},
        "lower": np.ravel(spline.lower_q).tolist(),
        "upper": np.ravel(spline.upper_q).tolist(),
        "velocity": np.ravel(spline.upper_dq).tolist(),
        "effort": np.ravel(spline.upper_effort).tolist(),
    }
    print(json.dumps(result))


main()
