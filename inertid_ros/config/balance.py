"""Options of robots that could fall over."""

import attrs

from inertid_ros.config.schema import former_syntax
from inertid_ros.config.schema.option_fields import option, section
from inertid_ros.core.errors import ConfigurationError


@attrs.frozen
class AreaOptions:
    """Corners of an area on the ground, in the root frame."""

    x: tuple[float, ...] = option((), "of every corner [m]", of=float, minimum=-1e4, maximum=1e4)
    y: tuple[float, ...] = option((), "of every corner [m]", of=float, minimum=-1e4, maximum=1e4)

    def __attrs_post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ConfigurationError(f"x has {len(self.x)} values and y {len(self.y)}; give both of every corner")


@attrs.frozen
class BalanceOptions:
    """Balance of a robot whose root link stands on the ground, such as a humanoid with its legs locked.

    Attributes
    ----------
    support : AreaOptions
        Area of contact, in which the zero-moment point stays; without corners it is not checked.
    com_region : AreaOptions
        Area above which the centre of mass stays; without corners that of contact with its margin.
    """

    support: AreaOptions = section(AreaOptions, former_syntax.corners)
    ground_m: float = option(0.0, "height of the ground in the root frame [m]", minimum=-100.0, maximum=100.0)
    support_margin_m: float = option(
        0.02, "kept from the edges of the area of contact [m]", minimum=0.0, maximum=10.0
    )
    normal_force: float = option(
        0.2, "smallest force on the ground, as a fraction of the weight", minimum=0.0, maximum=1.0
    )
    com_region: AreaOptions = section(AreaOptions, former_syntax.corners)
