"""Parameters with which a flow takes seconds."""

from support.nodes.armed_excitation import PARAMETERS

# The fake robot moves for six seconds.
SHORT_MOTION = {
    **PARAMETERS,
    "monitor.lease_timeout_s": 2.0,
    "require_recorder": True,
    "excitation.duration_s": 6.0,
    "excitation.base_frequency_hz": 0.5,
    "excitation.harmonics": 3,
    "excitation.starts": 4,
    "excitation.improved": 0,
}
# With the simulator and up to eight nodes on two cores: states and ticks come as often as a test needs them, not as
# often as a robot's do.
STATE_HZ = 100.0
MANY_NODES = {
    "tick_s": 0.02,
    "monitor.state_timeout_s": 1.5,
    "monitor.max_age_s": 2.0,
    "monitor.min_rate_hz": 2.0,
    "monitor.rate_window_s": 2.0,
    "monitor.lease_timeout_s": 3.0,
    "monitor.progress_tolerance": 0.1,
    "monitor.tracking_tolerance": 0.5,  # what a simulated robot falls behind that is held up for a third of a second
    "execution.horizon_s": 1.5,
    "execution.period_s": 0.1,
    "execution.grid_s": 0.04,
    "execution.step_s": 0.02,
    "excitation.duration_s": 3.0,
    "excitation.base_frequency_hz": 1 / 3,
    "excitation.harmonics": 3,
    "excitation.starts": 2,
    "excitation.improved": 1,
    "excitation.iterations": 3,
    "execution.settle_s": 0.2,
    "execution.approach_speed": 1.0,
}
