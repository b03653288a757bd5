"""Direction combinations on a fixed arm: intervals left by pruning, and the condition number ([Naveen2019]_ sec. 5)."""

import argparse
import logging
import time

import numpy as np
from studies.arm import model, urdf
from tables import machine, publish, table

from inertid_ros.config.excitation import CombinationOptions, ExcitationOptions
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.planning.interval_motion import rank_and_condition
from inertid_ros.excitation.planning.interval_planner import fixed_base_problem, improve_motion, plan_intervals


def main() -> None:
    """Plan with fewer and fewer intervals, and publish the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=4, help="number of orders of the combinations to try")
    orders = parser.parse_known_args()[0].orders
    logging.getLogger("inertid_ros").setLevel(logging.ERROR)
    arm = model(urdf())
    limits, rows = motion_limits(arm), []
    for most in (27, 24, 20):
        combinations = CombinationOptions(orders=orders, starts=12, iterations=40, most=most)
        options = ExcitationOptions(kind="combinations", mounting="none", combinations=combinations)
        problem = fixed_base_problem(arm, limits, options, motion_constraints(arm, limits, options))
        began = time.process_time()
        plan = plan_intervals(problem, seed=0)
        seconds = time.process_time() - began
        whole = improve_motion(problem, plan.whole, combinations.iterations, np.inf)
        blocks, _ = problem.evaluate(whole)
        condition = rank_and_condition(blocks.reshape(-1, blocks.shape[-1]), combinations.significant)[1]
        rows.append(
            [len(whole.directions), f"{condition:.2f}", len(plan.motion.directions), f"{plan.condition_number:.2f}",
             2 * arm.joints, f"{seconds:.0f}"]
        )
    publish(
        "direction combinations",
        "## Direction combinations on a fixed arm\n\n"
        "UR10 with all limits and intervals of one second. The equations are the joint torques including drives;"
        " columns have unit norm. The motion of all combinations and the motion of the kept combinations are optimised"
        f" with equal numbers of iterations; the best of {orders} orders is shown. {machine()}.\n\n"
        + table(
            ["offered", "condition number of all", "kept", "condition number of kept", "variables", "CPU s"], rows
        ),
    )


if __name__ == "__main__":
    main()
