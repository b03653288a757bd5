"""Options of exciting motions: the limits they keep, what they must not touch, and how they are planned."""

import math
from collections.abc import Mapping

import attrs

from inertid_ros.core.errors import ConfigurationError

from .option_fields import REQUIRED, named, option, section, vector

MOTION_TYPES = ("fourier", "cycloidal", "bspline", "combinations")
CRITERIA = ("condition", "a", "d", "e")
CRITERION_SCALINGS = ("columns", "metric", "prior", "none")
MEASURED = ("joints", "base")
MOUNTINGS = ("floor", "wall", "ceiling", "none")
OBSTACLE_SHAPES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"),
                   "capsule": ("radius", "length")}


@attrs.frozen
class LimitOptions:
    """How the limits of a motion follow from those of the URDF."""

    position_margin: float = option(0.05, "kept from the URDF's position limits [rad or m]", minimum=0.0, maximum=10.0)
    velocity_fraction: float = option(
        0.8, "of the URDF's velocity limits that a motion may use", minimum=0.01, maximum=1.0)
    effort_fraction: float = option(
        0.8, "of the URDF's effort limits that the prior model may need; the rest covers its error", minimum=0.01,
        maximum=1.0)
    default_velocity: float = option(  # 250 mm/s, the reduced speed of ISO 10218-1, at half a metre from the joint
        0.5, "limit of joints to which neither the URDF nor velocity gives one; it is told [rad/s or m/s]",
        minimum=1e-3, maximum=1e3,
    )
    default_acceleration: float = option(
        5.0, "limit of joints that acceleration does not name; a URDF has none [rad/s^2 or m/s^2]", minimum=1e-3,
        maximum=1e4)
    acceleration: Mapping[str, float] = named(
        float, "limit of a joint [rad/s^2 or m/s^2]", "acceleration_joint_names", minimum=1e-9, maximum=1e9)
    velocity: Mapping[str, float] = named(
        float, "limit of a joint in place of the URDF's [rad/s or m/s]", "velocity_joint_names", minimum=1e-9,
        maximum=1e9)
    effort: Mapping[str, float] = named(
        float, "limit of a joint in place of the URDF's [N m or N]", "effort_joint_names", minimum=1e-9, maximum=1e9)
    position: Mapping[str, tuple[float, ...]] = named(
        float, "lower and upper limit of a joint, inside the URDF's [rad or m]", "position_joint_names", many=True,
        length=2, minimum=-1e6, maximum=1e6)
    continuous_range: float = option(
        math.pi, "joints without position limits stay within plus and minus this [rad]", minimum=0.01, maximum=1e3)


@attrs.frozen
class ObstacleOptions:
    """A body around the robot."""

    shape: str = option(
        REQUIRED, "box, sphere, cylinder or capsule, the last two along z", of=str, choices=tuple(OBSTACLE_SHAPES))
    size: tuple[float, ...] = option((), "full edges of a box [m]", of=float, minimum=1e-6, maximum=1e4)
    radius: float = option(0.0, "of all but a box [m]", minimum=0.0, maximum=1e4)
    length: float = option(0.0, "of a cylinder, or of a capsule without its caps [m]", minimum=0.0, maximum=1e4)
    xyz: tuple[float, ...] = vector((0.0, 0.0, 0.0), "of its centre in the root frame [m]", 1e4)
    rpy: tuple[float, ...] = vector((0.0, 0.0, 0.0), "roll, pitch and yaw in the root frame [rad]", 10.0)

    def __attrs_post_init__(self) -> None:
        needed = OBSTACLE_SHAPES[self.shape]
        for name in ("size", "radius", "length"):
            if bool(getattr(self, name)) != (name in needed):
                what = "is missing; give it" if name in needed else "does not belong"
                raise ConfigurationError(f"{name} {what} to a {self.shape}, which has {' and '.join(needed)} [m]")
        if self.size and len(self.size) != 3:
            raise ConfigurationError(f"size has {len(self.size)} values; give 3")


@attrs.frozen
class CollisionOptions:
    """What a motion must not touch."""

    self_collision: bool = option(True, "links keep clear of one another, by the collision shapes of the URDF")
    clearance_m: float = option(0.01, "smallest distance of links from one another [m]", minimum=0.0, maximum=10.0)
    obstacle_clearance_m: float = option(
        0.05, "smallest distance of links from obstacles and from the floor or mounting plane [m]", minimum=0.0,
        maximum=10.0)
    obstacles: Mapping[str, ObstacleOptions] = named(ObstacleOptions, "bodies around the robot", "obstacle_names")
    mesh_folders: tuple[str, ...] = option(
        (), "folders in which package:// meshes are looked for, before those above the URDF and of ROS")
    srdf: str = option("", "file that names pairs of links not to be checked; the links of a joint never are")
    ignored: Mapping[str, tuple[str, ...]] = named(
        str, "links and obstacles that a link or obstacle is not checked against", "ignored_names", many=True)


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
    support : area of contact, in which the zero-moment point stays; without corners it is not checked.
    com_region : area above which the centre of mass stays; without corners that of contact with its margin.
    """

    support: AreaOptions = section(AreaOptions)
    ground_m: float = option(0.0, "height of the ground in the root frame [m]", minimum=-100.0, maximum=100.0)
    support_margin_m: float = option(0.02, "kept from the edges of the area of contact [m]", minimum=0.0, maximum=10.0)
    normal_force: float = option(
        0.2, "smallest force on the ground, as a fraction of the weight", minimum=0.0, maximum=1.0)
    com_region: AreaOptions = section(AreaOptions)


@attrs.frozen
class CombinationOptions:
    """How a motion of direction combinations is planned ([Naveen2019]_ sec. 5)."""

    interval_s: float = option(1.0, "of each interval [s]", minimum=0.05, maximum=600.0)
    offered: int = option(
        256, "combinations to choose from, at most; n joints have 2^(n-1)", minimum=2, maximum=100_000)
    most: int = option(67, "intervals kept at most; 0 keeps what pruning keeps", minimum=0, maximum=100_000)
    neutral: int = option(5, "intervals in a row that pruning keeps without gain", minimum=0, maximum=1000)
    significant: float = option(
        1 / 300, "singular values count from this fraction of the largest on", minimum=1e-12, maximum=1.0)
    velocity_reward: float = option(
        0.003, "weight of one over the mean squared velocity beside the condition number [rad^2/s^2]", minimum=0.0,
        maximum=1e6)
    wheel_range: float = option(
        9.42477796076938, "angle that every reaction wheel turns in an interval [rad]", minimum=1e-6, maximum=1e6)
    orders: int = option(8, "random orders of the combinations that are tried", minimum=1, maximum=10_000)
    starts: int = option(20, "random seeds tried per order, before and after pruning", minimum=1, maximum=100_000)
    iterations: int = option(
        40, "of sequential quadratic programming after pruning; before it a quarter", minimum=0, maximum=100_000)
    samples: int = option(6, "instants per interval at which the cost is evaluated", minimum=2, maximum=1000)


@attrs.frozen
class ExcitationOptions:
    """How an exciting motion is planned."""

    kind: str = option(
        "fourier", "motion to plan; combinations are cycloidal intervals of direction combinations, which are planned"
        " for the condition number, without regard to earlier recordings", choices=MOTION_TYPES)
    duration_s: float = option(20.0, "of the motion [s]", minimum=1.0, maximum=600.0)
    base_frequency_hz: float = option(
        0.1, "of the Fourier series; a whole number of periods in the duration moves best [Hz]", minimum=1e-3,
        maximum=10.0)
    harmonics: int = option(6, "of the Fourier series", minimum=2, maximum=50)
    intervals: int = option(20, "of the cycloidal or B-spline motion", minimum=2, maximum=1000)
    criterion: str = option(
        "condition", "what planning makes small: condition number, or root mean square (a), geometric mean (d) or"
        " largest (e) standard deviation of the parameters", choices=CRITERIA)
    scaling: str = option(
        "columns", "what a step in the parameters counts: regressor columns of unit norm, the prior's metric (the same"
        " in all frames and units), their prior values, or SI units (none)", choices=CRITERION_SCALINGS)
    measured: tuple[str, ...] = option(
        ("joints",), "what is measured: joint torques, the wrench at the base (a force plate)", choices=MEASURED)
    base_deviation: tuple[float, ...] = option(
        (1.0, 0.3), "standard deviations of force and torque at the base per root second [N, N m]", length=2,
        minimum=1e-9, maximum=1e9)
    kept_parameters: int = option(
        0, "only so many combinations of parameters count, the best excited; 0 counts all", minimum=0, maximum=100_000)
    criterion_bound: float = option(
        math.inf, "combinations are left out until the criterion of the rest can be brought below this", minimum=1e-12)
    seed: int = option(0, "of the random starts; the same seed gives the same motion", minimum=0)
    validation_kind: str = option("fourier", "of the held-out motion", choices=MOTION_TYPES)
    validation_duration_s: float = option(
        0.0, "of the held-out motion [s]; 0 is as long as the other", minimum=0.0, maximum=600.0)
    validation_seed: int = option(1, "of the held-out motion", minimum=0)
    starts: int = option(48, "random feasible motions to begin with", minimum=1, maximum=100_000)
    improved: int = option(3, "of the best of them that are improved", minimum=0, maximum=1000)
    workers: int = option(
        0, "processes that improve at once; 0 takes one per core; the motion is the same", minimum=0, maximum=1024)
    iterations: int = option(60, "of each improvement, at most", minimum=0, maximum=100_000)
    time_limit_s: float = option(
        60.0, "planning ends then with the best motion so far; reached, it depends on the machine's speed [s]",
        minimum=0.1, maximum=1e5)
    criterion_samples: int = option(120, "instants at which the criterion is evaluated", minimum=10, maximum=100_000)
    limit_use: float = option(
        0.95, "fraction of velocity and acceleration limits used; the rest is room for braking", minimum=0.05,
        maximum=1.0)
    mounting: str = option(
        "floor", "what the robot is mounted on: nothing moves below (behind) the lowest point of its base in the root"
        " frame; none looks at no floor", choices=MOUNTINGS)
    floor_m: float = option(
        -math.inf, "height in the root frame that no part of a moving link may go below; -.inf leaves it to mounting"
        " [m]", maximum=1e4)
    constraint_samples: int = option(
        400, "instants at which the search looks at distances; the finished plan is proven in between", minimum=10,
        maximum=100_000)
    knot_step_s: float = option(0.02, "distance of the plan's points [s]", minimum=1e-3, maximum=0.1)
    collision: CollisionOptions = section(CollisionOptions)
    balance: BalanceOptions = section(BalanceOptions)
    combinations: CombinationOptions = section(CombinationOptions)

    @property
    def held_out(self) -> "ExcitationOptions":
        """Those of the held-out motion.

        Raises
        ------
        ConfigurationError
            It would be the motion that is fitted.
        """
        duration = self.validation_duration_s or self.duration_s
        if (self.validation_kind, self.validation_seed, duration) == (self.kind, self.seed, self.duration_s):
            raise ConfigurationError(
                f"excitation.seed and excitation.validation_seed are both {self.seed}, so that the held-out motion"
                " would be the one that is fitted; change one of them"
            )
        return attrs.evolve(self, kind=self.validation_kind, seed=self.validation_seed, duration_s=duration)
