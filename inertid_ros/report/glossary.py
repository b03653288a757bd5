"""Terms that a page explains; docs/glossary.md has them all, with their sources."""

GLOSSARY = (
    ("base parameters", "the combinations of parameters that motion can excite; all that measurements depend on"),
    ("calibrated", "what was identified: the URDF with its inertial parameters, and drives beside it"),
    ("condition number", "largest over smallest singular value of the equations, columns scaled: how evenly they show"
     " all combinations of parameters"),
    ("cutoff", "frequency above which motion and measurements are filtered away before anything is fitted"),
    ("drive parameters", "what a joint has beside the bodies: rotor inertia, friction, offset, stiffness"),
    ("geodesic distance", "how far a body is from another one, free of units and frames; 0 is the same body"),
    ("held out", "recorded and not used in the fit, so that errors on it are those of a prediction"),
    ("identified", "determined by the data: they take away nine tenths of the variance that the prior leaves"),
    ("noise floor", "noise of the sensor that is left below the cutoff: no model can have a smaller error"),
    ("physical consistency", "the parameters are those of a body that can exist"),
    ("prior", "parameters and their uncertainty before the data: those of the URDF, or of an earlier result"),
    ("pseudo-inertia", "4 x 4 matrix of second moments, first moment and mass of a body; positive definite exactly for"
     " bodies that can exist"),
    ("R²", "share of the variance of a channel that is explained; 1 is all of it, 0 no more than its mean"),
    ("relative error", "norm of the residual over the norm of the measurement, over all channels"),
    ("residual", "what is measured less what the parameters predict"),
    ("resting, sliding samples", "a sample slides where all drives that act on its channel move fast enough for"
     " friction to have a direction, else it rests, and stiction is part of its error"),
)  # fmt: skip
