"""Dynamic calibration of robots in ROS 2: physically consistent inertial parameters.

The names below are the public interface. Each name is loaded at its first use.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from inertid_ros.calibration.calibrate import calibrate as calibrate
    from inertid_ros.calibration.planning import plan as plan
    from inertid_ros.calibration.validation import validate as validate
    from inertid_ros.config.configuration import (
        Configuration as Configuration,
        ExcitationConfiguration as ExcitationConfiguration,
    )
    from inertid_ros.config.excitation import ExcitationOptions as ExcitationOptions, LimitOptions as LimitOptions
    from inertid_ros.config.identification import (
        ConstraintOptions as ConstraintOptions,
        IdentifyOptions as IdentifyOptions,
    )
    from inertid_ros.config.recordings import PrepareOptions as PrepareOptions
    from inertid_ros.config.robot import RobotOptions as RobotOptions
    from inertid_ros.config.yaml_files import load_configuration as load_configuration
    from inertid_ros.core.errors import (
        ExcitationError as ExcitationError,
        IdentificationError as IdentificationError,
        InertidError as InertidError,
        ModelError as ModelError,
        RecordingError as RecordingError,
    )
    from inertid_ros.data.files.loading import load_recording as load_recording, write_npz as write_npz
    from inertid_ros.data.preparation.prepare import prepare as prepare
    from inertid_ros.data.recording import Recording as Recording
    from inertid_ros.identification.assessment.gate import Verdict as Verdict
    from inertid_ros.identification.identify import identify as identify
    from inertid_ros.payload.offline import PayloadOptions as PayloadOptions, payload_offline as identify_payload  # noqa: F401
    from inertid_ros.report.results import Result as Result
    from inertid_ros.robot.model import RobotModel as RobotModel, load_model as load_model
else:
    _PUBLIC = {
        "calibrate": "calibration.calibrate.calibrate",
        "plan": "calibration.planning.plan",
        "validate": "calibration.validation.validate",
        "load_configuration": "config.yaml_files.load_configuration",
        "Configuration": "config.configuration.Configuration",
        "ExcitationConfiguration": "config.configuration.ExcitationConfiguration",
        "ConstraintOptions": "config.identification.ConstraintOptions",
        "ExcitationOptions": "config.excitation.ExcitationOptions",
        "IdentifyOptions": "config.identification.IdentifyOptions",
        "LimitOptions": "config.excitation.LimitOptions",
        "PrepareOptions": "config.recordings.PrepareOptions",
        "RobotOptions": "config.robot.RobotOptions",
        "InertidError": "core.errors.InertidError",
        "ExcitationError": "core.errors.ExcitationError",
        "IdentificationError": "core.errors.IdentificationError",
        "ModelError": "core.errors.ModelError",
        "RecordingError": "core.errors.RecordingError",
        "load_recording": "data.files.loading.load_recording",
        "write_npz": "data.files.loading.write_npz",
        "Recording": "data.recording.Recording",
        "prepare": "data.preparation.prepare.prepare",
        "identify": "identification.identify.identify",
        "Verdict": "identification.assessment.gate.Verdict",
        "identify_payload": "payload.offline.payload_offline",
        "PayloadOptions": "payload.offline.PayloadOptions",
        "Result": "report.results.Result",
        "load_model": "robot.model.load_model",
        "RobotModel": "robot.model.RobotModel",
    }

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name not in _PUBLIC:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        module, _, attribute = _PUBLIC[name].rpartition(".")
        globals()[name] = value = getattr(import_module(f"{__name__}.{module}"), attribute)
        return value

    def __dir__() -> list[str]:
        return sorted([*_PUBLIC, "__version__"])
