"""Options of simulated robots (arms, and legged robots on force plates), and of deliberate errors in a URDF."""

import attrs

from inertid_ros.core.errors import ConfigurationError

from .option_fields import TRIPLE, option, section


@attrs.frozen
class SensorOptions:
    """Errors of the reported states: standard deviations of independent normal noise, and play."""

    position_noise: float = option(2e-5, "noise of the encoders [rad or m]", 0.0, 1.0)
    position_resolution: float = option(0.0, "resolution of the encoders; 0 reports every digit [rad or m]", 0.0, 1.0)
    velocity_noise: float = option(2e-3, "noise of the velocities [rad/s or m/s]", 0.0, 10.0)
    effort_noise: float = option(1e-3, "noise of the efforts, as a fraction of the effort limit", 0.0, 1.0)
    play: float = option(1e-4, "play of the gears between drive and encoder, to either side [rad or m]", 0.0, 0.1)
    base_velocity_noise: float = option(5e-5, "noise of the linear velocity of a floating base [m/s]", 0.0, 1.0)
    base_rate_noise: float = option(8e-5, "noise of the angular velocity of a floating base [rad/s]", 0.0, 1.0)


@attrs.frozen
class DriveOptions:
    """Typical drives, in proportion to the limits of the robot, so that one set of numbers suits every arm."""

    viscous: float = option(0.02, "viscous friction at the velocity limit, as a fraction of the effort limit", 0.0, 1.0)
    coulomb: float = option(0.01, "Coulomb friction, as a fraction of the effort limit", 0.0, 1.0)
    rotor_inertia: float = option(0.002, "inertia reflected to the joint: effort at 1 rad/s^2 as a fraction of the"
        " effort limit", 0.0, 1.0)
    offset: float = option(0.003, "constant torque of sensor or cable, as a fraction of the effort limit", 0.0, 1.0)
    variation: float = option(0.5, "the joints' values differ from typical values by up to this fraction", 0.0, 1.0)


@attrs.frozen
class ControllerOptions:
    """Position controller and drives of the simulated arm."""

    kind: str = option("cascade", "cascade: drives take positions, and close loops of position and velocity; pid: the"
        " controller closes one loop by efforts, from the states that it measures", choices=("cascade", "pid"))
    rate_hz: float = option(500.0, "rate of the controller; drives follow one period later [Hz]", 50.0, 1000.0)
    bandwidth_rad_s: float = option(75.0, "natural frequency of every joint [rad/s]", 10.0, 200.0)
    feed_forward: float = option(0.9, "share of the command's velocity that cascades feed forward; joints lag by 2 (1 -"
        " feed_forward) / bandwidth_rad_s", 0.0, 1.0)
    effort_timeout_s: float = option(0.1, "the arm holds its position if no effort command comes for this time [s]",
        0.005, 10.0)


@attrs.frozen
class SimulationOptions:
    """Behaviour of the simulated robot."""

    timestep_s: float = option(1e-3, "time step of physics and controller [s]", 1e-5, 0.01)
    seed: int = option(0, "seed of noise and drives", minimum=0)
    sensors: SensorOptions = section(SensorOptions)
    controller: ControllerOptions = section(ControllerOptions)
    drives: DriveOptions = section(DriveOptions)


@attrs.frozen
class PerturbationOptions:
    """Size of the deliberate errors of the bodies in a URDF."""

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
    seconds: float = option(1.5, "duration of each movement [s]", 0.1, 60.0)
    com_m: tuple[float, ...] = option((0.04, 0.06, 0.03), "largest displacement of the centre of mass to either side:"
        " forward, left, up [m]; never more than three tenths of the distance to the edge of the soles", 0.0, 1.0,
        of=TRIPLE)
    torso_rad: tuple[float, ...] = option((0.1, 0.25, 0.0), "largest roll, pitch and yaw of the base to either side"
        " [rad]", 0.0, 1.0, of=TRIPLE)
    joint_rad: float = option(0.0, "largest displacement of every joint outside the supporting legs, to either side"
        " [rad]", 0.0, 3.0)
    one_tilt_at_a_time: bool = option(True, "the torso either rolls or pitches; legs without a yaw joint cannot do both"
        " on two flat feet")


@attrs.frozen
class BalanceControlOptions:
    """Gains and weights of the whole-body controller."""

    com_hz: float = option(1.0, "natural frequency of the centre of mass about its reference [Hz]", 0.1, 10.0)
    torso_hz: float = option(1.5, "natural frequency of the base's orientation [Hz]", 0.1, 10.0)
    posture_hz: float = option(1.5, "natural frequency of the joints of the supporting legs [Hz]", 0.1, 10.0)
    free_joint_hz: float = option(3.0, "natural frequency of the other joints [Hz]", 0.1, 20.0)
    posture_weight: float = option(0.03, "weight of the joints of the supporting legs, relative to the centre of mass",
        1e-6, 10.0)
    joint_damping: float = option(2.0, "damping of every joint with a motor, per kg m^2 of its inertia [N m s/rad]",
        0.0, 100.0)
    period_s: float = option(4e-3, "period of the controller [s]", 1e-4, 0.02)


@attrs.frozen
class BodySensorOptions:
    """Standard deviations of independent normal noise; encoder noise follows [vanDerGaag2024]_ sec. 4.1."""

    position: float = option(9e-6, "noise of the encoders [rad]", 0.0, 1.0)
    velocity: float = option(2e-3, "noise of the joint velocities [rad/s]", 0.0, 10.0)
    effort: float = option(0.1, "noise of the joint torques [N m]", 0.0, 100.0)
    force: float = option(0.5, "noise of the plates' forces [N]", 0.0, 100.0)
    moment: float = option(0.1, "noise of the plates' moments [N m]", 0.0, 100.0)
    rate: float = option(1e-3, "noise of the gyroscope and of the base's angular velocity [rad/s]", 0.0, 1.0)
    acceleration: float = option(0.02, "noise of the accelerometer [m/s^2]", 0.0, 10.0)
    base_position: float = option(1e-4, "noise of the base's position [m]", 0.0, 1.0)
    base_orientation: float = option(1e-4, "noise of the base's orientation [rad]", 0.0, 1.0)
    base_velocity: float = option(1e-3, "noise of the base's linear velocity [m/s]", 0.0, 1.0)


@attrs.frozen
class LeggedRobotOptions:
    """Behaviour of the simulated legged robot."""

    robot: str = option("", "a robot that stands on force plates in place of the arm: biped (an exoskeleton on two"
        " plates), humanoid (a Unitree G1 on one); empty simulates an arm", choices=("", "biped", "humanoid"))
    timestep_s: float = option(1e-3, "time step of the physics [s]", 1e-4, 0.005)
    seed: int = option(0, "seed of movements and noise", minimum=0)
    friction: float = option(0.8, "friction coefficient between soles and plates", 0.01, 5.0)
    crouch_rad: float = option(0.3, "bend of the hips at the start [rad]", 0.0, 1.0)
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
    stamp_offset_s: float = option(0.0, "offset added to every stamp [s]", -1e9, 1e9)
    gap_rate_hz: float = option(0.3, "rate of pauses of the publisher of states; states of these pauses are missing"
        " [Hz]", 0.0, 100.0)
    gap_s: tuple[float, ...] = option((0.01, 0.017, 0.03), "length of these pauses: shortest, median and longest;"
        " default as for a joint_state_broadcaster on an idle machine; busy: (0.024, 0.068, 0.39) at 1 Hz [s]",
        1e-3, 10.0, of=TRIPLE)
    speed_scaling: float = option(1.0, "pace of the controller's trajectories", 0.0, 2.0)
    tell_speed_scaling: bool = option(True, "the controller's state reports this pace; false reports 1")
    silent_plates: tuple[str, ...] = option((), "force plates that report nothing")
    frozen_plates: tuple[str, ...] = option((), "force plates that repeat their last values with fresh stamps")
    reversed_plates: tuple[str, ...] = option((), "force plates that report the wrench of the robot on them")

    def __attrs_post_init__(self) -> None:
        if sorted(self.gap_s) != list(self.gap_s):
            raise ConfigurationError(f"gap_s {self.gap_s} does not increase; give shortest, median and longest")
