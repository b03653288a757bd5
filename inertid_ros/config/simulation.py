"""Options of simulated robots, arms and legged ones on force plates, and of how a URDF is made wrong on purpose."""

import attrs

from inertid_ros.core.errors import ConfigurationError

from .option_fields import option, section


@attrs.frozen
class SensorOptions:
    """Errors of the reported states: standard deviations of independent normal noise, and play."""

    position_noise: float = option(2e-5, "of the encoders [rad or m]", 0.0, 1.0)
    position_resolution: float = option(0.0, "of the encoders; zero reports every digit [rad or m]", 0.0, 1.0)
    velocity_noise: float = option(2e-3, "of the velocities [rad/s or m/s]", 0.0, 10.0)
    effort_noise: float = option(1e-3, "of the efforts, as a fraction of the effort limit", 0.0, 1.0)
    play: float = option(1e-4, "of the gears between drive and encoder, to either side [rad or m]", 0.0, 0.1)


@attrs.frozen
class DriveOptions:
    """Typical drives in proportion to the robot's own limits, so that one set of numbers suits every arm."""

    viscous: float = option(0.02, "friction at the velocity limit, as a fraction of the effort limit", 0.0, 1.0)
    coulomb: float = option(0.01, "friction, as a fraction of the effort limit", 0.0, 1.0)
    rotor_inertia: float = option(0.002, "reflected to the joint: effort at 1 rad/s^2 as a fraction of the effort"
        " limit", 0.0, 1.0)
    offset: float = option(0.003, "constant torque of sensor or cable, as a fraction of the effort limit", 0.0, 1.0)
    variation: float = option(0.5, "the joints' values differ from the typical ones by up to this fraction", 0.0, 1.0)


@attrs.frozen
class ControllerOptions:
    """The arm's own position controller and drives."""

    kind: str = option("cascade", "cascade: drives take positions, and close loops of position and velocity; pid: the"
        " controller closes one loop by efforts, from the states that it measures", choices=("cascade", "pid"))
    rate_hz: float = option(500.0, "of the controller; drives are at its command one period later [Hz]", 50.0, 1000.0)
    bandwidth_rad_s: float = option(75.0, "natural frequency of every joint [rad/s]", 10.0, 200.0)
    feed_forward: float = option(0.9, "share of the command's velocity that cascades feed forward; joints lag by 2 (1 -"
        " feed_forward) / bandwidth_rad_s", 0.0, 1.0)
    effort_timeout_s: float = option(0.1, "without a new effort command for this long, the arm holds its position [s]",
        0.005, 10.0)


@attrs.frozen
class SimulationOptions:
    """How the simulated robot behaves."""

    timestep_s: float = option(1e-3, "of physics and controller [s]", 1e-5, 0.01)
    seed: int = option(0, "of noise and drives", minimum=0)
    sensors: SensorOptions = section(SensorOptions)
    controller: ControllerOptions = section(ControllerOptions)
    drives: DriveOptions = section(DriveOptions)


@attrs.frozen
class PerturbationOptions:
    """How far the bodies are perturbed."""

    point_masses: int = option(4, "point masses per body", 1, 1000)
    mass_uncertainty: float = option(0.4, "each body's mass changes by at most this share of it", 0.0, 0.99)
    region_scale: float = option(1.0, "the points lie in this multiple of the solid ellipsoid that has the body's own"
        " second moments", 0.0, 10.0)


@attrs.frozen
class MovementOptions:
    """Straight movements from one random target to the next, cubic in time and at rest at every target.

    Source: [vanDerGaag2024]_ sec. IV-A.
    """

    movements: int = option(20, "number of movements, the last of which returns to the start", 1, 10000)
    seconds: float = option(1.5, "of each movement [s]", 0.1, 60.0)
    com_m: tuple[float, ...] = option((0.04, 0.06, 0.03), "largest displacement of the centre of mass to either side:"
        " forward, left, up [m]; never more than three tenths of the distance to the edge of the soles", 0.0, 1.0,
        length=3)
    torso_rad: tuple[float, ...] = option((0.1, 0.25, 0.0), "largest roll, pitch and yaw of the base to either side"
        " [rad]", 0.0, 1.0, length=3)
    joint_rad: float = option(0.0, "largest displacement of every joint outside the supporting legs, to either side"
        " [rad]", 0.0, 3.0)
    one_tilt_at_a_time: bool = option(True, "the torso either rolls or pitches; legs without a yaw joint cannot do both"
        " on two flat feet")


@attrs.frozen
class BalanceControlOptions:
    """Gains and weights of the whole-body controller."""

    com_hz: float = option(1.0, "natural frequency of the centre of mass about its reference [Hz]", 0.1, 10.0)
    torso_hz: float = option(1.5, "of the base's orientation [Hz]", 0.1, 10.0)
    posture_hz: float = option(1.5, "of the joints of the supporting legs [Hz]", 0.1, 10.0)
    free_joint_hz: float = option(3.0, "of the other joints [Hz]", 0.1, 20.0)
    posture_weight: float = option(0.03, "of the joints of the supporting legs, relative to the centre of mass",
        1e-6, 10.0)
    joint_damping: float = option(2.0, "of every joint with a motor, for each kg m^2 of its inertia [N m s/rad]",
        0.0, 100.0)
    period_s: float = option(4e-3, "of the controller [s]", 1e-4, 0.02)


@attrs.frozen
class BodySensorOptions:
    """Standard deviations of independent normal noise; that of the encoders is that of [vanDerGaag2024]_ sec. 4.1."""

    position: float = option(9e-6, "of the encoders [rad]", 0.0, 1.0)
    velocity: float = option(2e-3, "of the joint velocities [rad/s]", 0.0, 10.0)
    effort: float = option(0.1, "of the joint torques [N m]", 0.0, 100.0)
    force: float = option(0.5, "of the plates' forces [N]", 0.0, 100.0)
    moment: float = option(0.1, "of the plates' moments [N m]", 0.0, 100.0)
    rate: float = option(1e-3, "of the gyroscope and of the base's angular velocity [rad/s]", 0.0, 1.0)
    acceleration: float = option(0.02, "of the accelerometer [m/s^2]", 0.0, 10.0)
    base_position: float = option(1e-4, "of the base's position [m]", 0.0, 1.0)
    base_orientation: float = option(1e-4, "of the base's orientation [rad]", 0.0, 1.0)
    base_velocity: float = option(1e-3, "of the base's linear velocity [m/s]", 0.0, 1.0)


@attrs.frozen
class LeggedRobotOptions:
    """How the simulated legged robot behaves."""

    robot: str = option("", "a robot that stands on force plates in place of the arm: biped (an exoskeleton on two"
        " plates), humanoid (a Unitree G1 on one); empty simulates an arm", choices=("", "biped", "humanoid"))
    timestep_s: float = option(1e-3, "of the physics [s]", 1e-4, 0.005)
    seed: int = option(0, "of movements and noise", minimum=0)
    friction: float = option(0.8, "between soles and plates", 0.01, 5.0)
    crouch_rad: float = option(0.3, "how far the hips are bent where the robot starts [rad]", 0.0, 1.0)
    movement: MovementOptions = section(MovementOptions)
    balance: BalanceControlOptions = section(BalanceControlOptions)
    sensors: BodySensorOptions = section(BodySensorOptions)


@attrs.frozen
class FaultOptions:
    """Faults of the simulated robot's joint states, controller and plates; may be changed while it runs."""

    silent: bool = option(False, "report nothing")
    frozen: bool = option(False, "repeat the last values with fresh stamps")
    not_finite: bool = option(False, "report NaN")
    delay_s: float = option(0.0, "report every state this late [s]", 0.0, 10.0)
    drop: float = option(0.0, "share of states that are lost", 0.0, 1.0)
    stamp_offset_s: float = option(0.0, "added to every stamp [s]", -1e9, 1e9)
    gap_rate_hz: float = option(0.3, "how often the publisher of states is held up; those of meanwhile are missing"
        " [Hz]", 0.0, 100.0)
    gap_s: tuple[float, ...] = option((0.01, 0.017, 0.03), "for how long: shortest, median and longest; those of a"
        " joint_state_broadcaster on an idle machine, on a busy one (0.024, 0.068, 0.39) at 1 Hz [s]", 1e-3, 10.0,
        length=3)
    speed_scaling: float = option(1.0, "pace of the controller's trajectories", 0.0, 2.0)
    tell_speed_scaling: bool = option(True, "the controller's state tells that pace; false tells 1")
    silent_plates: tuple[str, ...] = option((), "force plates that report nothing")
    frozen_plates: tuple[str, ...] = option((), "force plates that repeat their last values with fresh stamps")
    reversed_plates: tuple[str, ...] = option((), "force plates that report what the robot does to them")

    def __attrs_post_init__(self) -> None:
        if sorted(self.gap_s) != list(self.gap_s):
            raise ConfigurationError(f"gap_s {self.gap_s} falls; give shortest, median and longest")
