"""Options of the simulated robot."""

from dataclasses import dataclass, field

from .options import option


@dataclass(frozen=True)
class SensorOptions:
    """Noise of the reported states; standard deviations of independent normal noise."""

    position_noise: float = option(2e-5, "of the encoders [rad or m]", minimum=0.0, maximum=1.0)
    position_resolution: float = option(
        0.0, "of the encoders; zero reports every digit [rad or m]", minimum=0.0, maximum=1.0
    )
    velocity_noise: float = option(2e-3, "of the velocities [rad/s or m/s]", minimum=0.0, maximum=10.0)
    effort_noise: float = option(1e-3, "of the efforts, as a fraction of the effort limit", minimum=0.0, maximum=1.0)


@dataclass(frozen=True)
class DriveOptions:
    """Typical drives in proportion to the robot's own limits, so that one set of numbers suits every arm."""

    viscous: float = option(
        0.02, "friction at the velocity limit, as a fraction of the effort limit", minimum=0.0, maximum=1.0
    )
    coulomb: float = option(0.01, "friction, as a fraction of the effort limit", minimum=0.0, maximum=1.0)
    rotor_inertia: float = option(
        0.002, "reflected to the joint: effort at 1 rad/s^2 as a fraction of the effort limit", minimum=0.0, maximum=1.0
    )
    offset: float = option(
        0.003, "constant torque of sensor or cable, as a fraction of the effort limit", minimum=0.0, maximum=1.0
    )
    spread: float = option(
        0.5, "the joints' values differ from the typical ones by up to this fraction", minimum=0.0, maximum=1.0
    )


@dataclass(frozen=True)
class ControllerOptions:
    """The arm's own position controller: PD with gravity compensation and inertia feedforward of a rough model."""

    bandwidth_hz: float = option(8.0, "natural frequency of every joint [Hz]", minimum=0.1, maximum=50.0)
    damping_ratio: float = option(1.0, "of every joint", minimum=0.1, maximum=5.0)
    effort_timeout_s: float = option(
        0.1, "without a new effort command for this long, the arm holds its position [s]", minimum=0.005, maximum=10.0
    )


@dataclass(frozen=True)
class SimulationOptions:
    """How the simulated robot behaves."""

    timestep_s: float = option(1e-3, "of physics and controller [s]", minimum=1e-5, maximum=0.01)
    seed: int = option(0, "of noise and drives", minimum=0)
    sensors: SensorOptions = field(default_factory=SensorOptions)
    controller: ControllerOptions = field(default_factory=ControllerOptions)
    drives: DriveOptions = field(default_factory=DriveOptions)
