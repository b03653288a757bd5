"""Targets that are messages of other nodes: parameters that a controller takes, and joint states."""

import json
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from support.robots.random_robots import random_urdf

from inertid_ros.core.errors import ModelError
from inertid_ros.msg import CoupledDrive, InertialParameters, JointDynamics, LinkInertia, UserTerm
from inertid_ros.robot.model import load_model
from inertid_ros.ros.conversions import JointOrder
from inertid_ros.ros.received_parameters import ParameterSubscriber

from .target import Target
from .values import changed_data

_PARTS = {"links": LinkInertia, "joints": JointDynamics, "couplings": CoupledDrive, "terms": UserTerm}
_MODEL = load_model(random_urdf(np.random.default_rng(2), 2))


def _filled(message: Any, fields: dict[str, Any]) -> Any:
    """A message with these fields; ModelError where no publisher could send them."""
    message._check_fields = True  # its setters then refuse what could not be sent
    try:
        for key, value in fields.items():
            if key in _PARTS and hasattr(message, key) and not isinstance(message, JointState | CoupledDrive):
                value = [_filled(_PARTS[key](), part) for part in value]
            elif isinstance(value, dict):
                value = _filled(getattr(message, key), value)
            setattr(message, key, value)
    except (AssertionError, AttributeError, TypeError, ValueError, OverflowError):
        raise ModelError("not a message that a publisher could send") from None
    return message


def _parameters() -> bytes:
    links = [
        {"name": name, "mass": 1.0, "com": {"x": 0.1, "y": 0.0, "z": 0.0}, "inertia": [0.1, 0.0, 0.0, 0.1, 0.0, 0.1]}
        for name in _MODEL.link_names
    ]
    joints = [
        {"name": name, "viscous": 0.1, "coulomb": 0.2, "stribeck_speed": 0.1, "transition_speed": 0.01}
        for name in _MODEL.joint_names
    ]
    first, second = _MODEL.joint_names
    content = {
        "sequence": 1, "model_hash": _MODEL.hash, "validation_status": InertialParameters.PASSED,
        "verdict": InertialParameters.USE, "links": links, "joints": joints,
        "couplings": [{"name": "drive", "joints": [first, second], "ratios": [1.0, -1.0], "viscous": 0.1}],
        "terms": [{"name": "own", "joint": first, "expressions": ["q", f'sin(q["{second}"])*v'], "values": [1.0, 2.0]}],
    }  # fmt: skip
    return json.dumps(content).encode()


def _read_parameters(content: bytes) -> object:
    refused: list[str] = []
    logger = SimpleNamespace(info=lambda text: None, error=refused.append)
    node: Any = SimpleNamespace(get_logger=lambda: logger, create_subscription=lambda *arguments: None)
    subscriber = ParameterSubscriber(node, _MODEL)
    subscriber._receive(_filled(InertialParameters(), _fields(content)))
    if refused:
        raise ModelError(refused[0])
    assert subscriber.update()
    ones = np.ones(_MODEL.joints)
    torque = subscriber.inverse_dynamics(ones, ones, ones)
    assert np.isfinite(torque).all()
    return torque


def _read_joint_state(content: bytes) -> object:
    return JointOrder(("a", "b")).sample(_filled(JointState(), _fields(content)))


def _fields(content: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ModelError("not a message that a publisher could send")
    return fields


def _other_message(content: bytes, rng: random.Random) -> bytes:
    return json.dumps(changed_data(json.loads(content), rng)).encode()


def message_targets() -> list[Target]:
    """Readers of messages."""
    state = {"name": ["b", "a", "c"], "position": [0.1, 0.2, 0.3], "velocity": [], "effort": [1.0, 2.0, 3.0]}
    return [
        Target("parameters", _read_parameters, lambda: [_parameters()], _other_message),
        Target("joint_state", _read_joint_state, lambda: [json.dumps(state).encode()], _other_message),
    ]
