"""FIGAROH on given samples, in an interpreter with FIGAROH; the last line printed is JSON.

``figaroh_tasks.py FOLDER FACTOR`` takes the shortest way through the public functions: regressor of all samples,
decimation by the factor (1: none), problem, effort fit with a pseudo-inertia LMI per link (the estimator of FIGAROH's
``select_stage: physical_fit``). The full workflow has additional steps, and decimates by ten by default, with the
filter of this script.
"""

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
from figaroh.identification.parameter import add_standard_additional_parameters, get_standard_parameters
from figaroh.identification.physical_fit import build_problem, solve_direct_effort_fit
from figaroh.tools.regressor import build_regressor_basic
from memory import peak_mb, resident_mb
from scipy import signal


def decimated(values: np.ndarray, joints: int, factor: int) -> np.ndarray:
    """Rows of every joint, one joint after the other, at a lower rate."""
    if factor == 1:
        return values
    blocks = values.reshape(joints, -1, *values.shape[1:])
    return np.concatenate([signal.decimate(block, q=factor, axis=0, zero_phase=True) for block in blocks])


def main() -> None:
    import cvxopt  # noqa: F401 - their default solver, loaded on use: must not count as their time
    import picos  # noqa: F401

    folder, factor, imported = Path(sys.argv[1]), int(sys.argv[2]), resident_mb()
    model = pin.buildModelFromUrdf(str(folder / "robot.urdf"))
    samples = np.load(folder / "samples.npz")
    q, v, a, tau = (samples[name] for name in ("q", "v", "a", "tau"))
    joints = list(range(model.nv))
    zeros = [0.0] * model.nv
    config = {
        "has_friction": True,
        "has_actuator_inertia": True,
        "has_joint_offset": True,
        "is_joint_torques": True,
        "act_idxv": joints,
        **dict.fromkeys(("fv", "fs", "Ia", "off"), zeros),
    }
    prior = {**get_standard_parameters(model, config), **add_standard_additional_parameters(model, config)}
    # Without FIGAROH's backend layer, which costs a tenth of the speed.
    robot = SimpleNamespace(model=model, data=model.createData())

    start, wall = time.process_time(), time.perf_counter()
    regressor = build_regressor_basic(robot, q, v, a, config)
    built = time.process_time()
    effort = tau.T.ravel()
    reduced, target = (decimated(values, model.nv, factor) for values in (regressor, effort))
    problem = build_problem(reduced, target, list(prior), list(model.names)[1:], prior=np.array(list(prior.values())))
    factored = time.process_time()
    record = solve_direct_effort_fit(problem, solver="cvxopt")
    solved, seconds = time.process_time(), time.perf_counter() - wall

    residual = (regressor @ record.theta - effort).reshape(tau.shape[1], -1)
    result = {
        "seconds": seconds,
        "cpu": solved - start,
        "regressor": built - start,
        "problem": factored - built,
        "solve": solved - factored,
        "imported_mb": imported,
        "peak_mb": peak_mb(),
        "consistent": bool(record.accepted),
        "rms_error": list(np.sqrt(np.mean(residual**2, axis=1))),
        "regressor_sum": float(np.abs(regressor).sum()),
    }
    print(json.dumps(result))


main()
