"""The configuration: trees of options, the same for command line and nodes."""

import attrs

from inertid_ros.config.schema.option_fields import section

from .excitation import ExcitationOptions, LimitOptions
from .identification import IdentifyOptions
from .identification_constraints import ConstraintOptions
from .preparation import PrepareOptions
from .recording_topics import RecordingTopics
from .robot import RobotOptions


@attrs.frozen
class Configuration:
    """Everything that can be set of reading, preparing and identifying, by topic."""

    robot: RobotOptions = section(RobotOptions)
    topics: RecordingTopics = section(RecordingTopics)
    prepare: PrepareOptions = section(PrepareOptions)
    identify: IdentifyOptions = section(IdentifyOptions)
    constraints: ConstraintOptions = section(ConstraintOptions)


@attrs.frozen
class ExcitationConfiguration:
    """Everything that can be set of planning a motion, by topic."""

    robot: RobotOptions = section(RobotOptions)
    limits: LimitOptions = section(LimitOptions)
    excitation: ExcitationOptions = section(ExcitationOptions)
