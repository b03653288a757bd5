"""Options of robots that could fall over."""

from dataclasses import dataclass

from .options import option


@dataclass(frozen=True)
class BalanceOptions:
    """Balance of a robot whose root link stands on the ground, such as a humanoid with its legs locked."""

    support: tuple[str, ...] = option(
        (), "corners of the area of contact, each X:Y in the root frame [m]: the zero-moment point stays inside"
    )
    ground_m: float = option(0.0, "height of the ground in the root frame [m]", minimum=-100.0, maximum=100.0)
    support_margin_m: float = option(
        0.02, "kept from the edges of the area of contact [m]", minimum=0.0, maximum=10.0
    )
    normal_force: float = option(
        0.2, "smallest force on the ground, as a fraction of the weight", minimum=0.0, maximum=1.0
    )
    com_region: tuple[str, ...] = option(
        (),
        "corners of the area above which the centre of mass stays, each X:Y in the root frame [m]; that of contact with"
        " its margin if not given",
    )
