"""Causes that show in a result: its parameters, its errors, and what it was compared with."""

from collections.abc import Mapping

from .cause import Cause, cause

_RATES = "check units and signs of the rates, and the inertia of the wheels"

SYMPTOMS: Mapping[str, Mapping[str, Cause]] = {
    "Single parameters are absurd, or the solver did not finish": {
        "mass_implausible": cause(
            "the mass of a link is far from the URDF's",
            "check the efforts of the joints before it (unit, sign, gain: robot.effort_scale), and in the URDF its mass"
            " and what is mounted on it",
            total="check the unit of the efforts (robot.effort_scale) and the masses of the URDF",
        ),
        "mass_open": cause(
            "the data do not show a mass so well that it counts",
            "do not read this mass by itself, since others predict the torque as well; where it is known, state it"
            " (constraints.mass)",
        ),
        "friction_excluded": cause(
            "friction of the URDF's <dynamics> is beyond the measured efforts",
            "it was not used; correct or drop damping and friction of these joints in the URDF",
        ),
        "load_elsewhere": cause(
            "a known load does not act as it was declared",
            "correct com of this load (robot.loads), in the frame of its link: gains of drives follow from it",
        ),
        "effort_without_friction": cause(
            "efforts may be computed by a model, not measured",
            "record what torque sensors or motor currents tell, not the torque that a controller commands or expects:"
            " its model is all that it holds; nothing is wrong in a simulation without friction",
        ),
        "parameter_implausible": cause(
            "a parameter is beyond what such a joint can have",
            "leave stiffness out of robot.drive_terms, unless the joint has a spring",
        ),
        "little_excited": cause(
            "the motion leaves much of the torque open",
            "record a motion that moves these joints more (inertid excite --prior plans one)",
        ),
        "border_reached": cause(
            "a parameter lies at a border that was set for it",
            "check constraints.{option}: the data wants this parameter beyond it",
            open="check constraints.{option}: the URDF's value is beyond it, and the data do not show this parameter",
        ),
        "inconsistent": cause("a body is not physically consistent", "use identify.estimator=consistent"),
        "not_optimal": cause(
            "the solver stopped before the optimum",
            "use the default solver and regularizer, and look for constraints that contradict one another",
        ),
    },
    "The error stays large": {
        "worse_than_nothing": cause(
            "the error is not below what is measured itself",
            "check sign and units of effort and position",
            momentum=_RATES,
        ),
        "worse_than_urdf": cause(
            "the error is not below that of the URDF as given",
            "check the effort of this joint, and record a motion that moves it more",
            all_joints="record a richer motion, and check that these recordings are of this robot",
            momentum=_RATES,
        ),
        "above_noise": cause(
            "the torque error is far above the noise of the effort",
            "look for what the model lacks at this joint: gain of its effort (robot.effort_scale), coupled drives"
            " (robot.couplings), delay (identify.remove_delay)",
            momentum=_RATES,
        ),
        "does_not_generalise": cause(
            "the error is much larger on held-out data than on the data fitted",
            "fit more and different motions, and check that the recordings are of one robot and payload",
        ),
    },
    'Errors are small, and the verdict is "use with care" all the same': {
        "not_validated": cause(
            "no other motion has been compared with the result",
            "record a second, different motion and give it with --validate",
        ),
        "held_out_not_new": cause("what was held out is the motion that was fitted", "validate with another motion"),
    },
}
"""Symptom to its causes, by name."""
