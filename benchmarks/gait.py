"""A person walking over two force plates: trained on a part of the steps, tested on the rest."""

import logging

import numpy as np
from support.recordings.gait import held_out, read_gait
from tables import datasets, machine, publish, table

from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.identification.assessment.validation import torque_errors
from inertid_ros.identification.identify import identify
from inertid_ros.identification.solvers.constraints import Constraints

TESTED = {
    "first third": (0, 1 / 3),
    "middle third": (1 / 3, 2 / 3),
    "last third": (2 / 3, 1),
    "last two fifths": (0.6, 1),
}
GROUPS = (slice(0, 3), slice(3, 6))


def main() -> None:
    logging.disable(logging.WARNING)
    folder = datasets()
    if folder is None:
        return
    equations, samples = read_gait(folder)
    total = float(equations.model.body_prior[:, 0].sum())
    rows = []
    for name, part in TESTED.items():
        fitted, tested = held_out(samples, *part)
        before = torque_errors(equations, equations.model.prior, [tested])
        rows.append([name, "prior", *_errors(before), f"{total:.2f}", ""])
        for label, constraints in (("fitted", Constraints()), ("fitted, weight known", Constraints(total_mass=total))):
            estimate = identify(equations, fitted, constraints=constraints)
            after = torque_errors(equations, estimate.parameters, [tested])
            real = f"{int(is_consistent(estimate.bodies).sum())} of {len(estimate.bodies)}"
            rows.append([name, label, *_errors(after), f"{estimate.bodies[:, 0].sum():.2f}", real])
    header = ["tested on", "parameters", "relative error", "force [N]", "moment [N m]", "mass [kg]", "consistent"]
    text = f"""## A person walking over two force plates

Real data: OpenSim's gait2354, subject 01, {len(samples)} samples at 60 Hz, twelve segments with given motion; the model
of this data set is the prior. Errors are for the held-out part, root mean square of the vector. If the weight is known,
for example by a scale, the total mass is an equality constraint ([Lee2019]_ eq. 3.6.83).

{table(header, rows)}

{machine()}"""
    publish("gait", text)


def _errors(errors) -> list[str]:
    norms = [np.linalg.norm(errors.rms_error[group]) for group in GROUPS]
    return [f"{100 * errors.relative_error:.2f} %", *(f"{norm:.1f}" for norm in norms)]


if __name__ == "__main__":
    main()
