"""Every remedy that a message of `excite` and `init` names helps if it is followed to the letter."""

from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from inertid_ros.cli import main as cli
from inertid_ros.core.errors import log_once

QUICK = {
    "excitation.starts": "1", "excitation.improved": "0", "excitation.duration_s": "5",
    "excitation.criterion_samples": "20", "excitation.constraint_samples": "20", "excitation.mounting": "none",
}  # fmt: skip
LINK = (
    '<link name="{name}"><inertial><origin xyz="0 0 0.2"/><mass value="{mass}"/>'
    '<inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
    '<collision><origin xyz="0 0 0.2"/><geometry>{shape}</geometry></collision></link>'
)
JOINT = (
    '<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="0 0 {up}"/>'
    '<axis xyz="0 1 0"/>{limit}{dynamics}</joint>'
)
SHOULDER_LIMIT = '<limit lower="-1.5" upper="1.5" velocity="2" effort="150"/>'
BOX = '<box size="0.08 0.08 0.36"/>'


def limit(lower: float = -1.5, upper: float = 1.5, velocity: float = 2.0, effort: float = 80.0) -> str:
    return f'<limit lower="{lower}" upper="{upper}" velocity="{velocity}" effort="{effort}"/>'


def arm(elbow_limit: str = limit(), dynamics: str = "", kind: str = "revolute", shape: str = BOX) -> str:
    """Two links that bend forward on a column; the arguments are of the second joint, the elbow, and its link."""
    return (
        '<robot name="arm"><link name="base"><collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision>'
        "</link>"
        + JOINT.format(name="shoulder", kind="revolute", parent="base", child="upper", up=0.1, limit=SHOULDER_LIMIT,
                       dynamics="")
        + LINK.format(name="upper", mass=2, shape=BOX)
        + JOINT.format(name="elbow", kind=kind, parent="upper", child="fore", up=0.4, limit=elbow_limit,
                       dynamics=dynamics)
        + LINK.format(name="fore", mass=2, shape=shape)
        + "</robot>"
    )  # fmt: skip


class Case(NamedTuple):
    """A robot, settings that are refused, a part of the message, and what it names, in full."""

    robot: str
    refused: tuple[str, ...]
    message: str
    remedies: tuple[tuple[str, ...], ...]


LOCKED = ("robot.locked_joints={elbow: 0}",)
WEAK = ("--start", "elbow=1.2", "--start", "shoulder=0")
UPRIGHT = ("--start", "elbow=0", "--start", "shoulder=0")
BALL = "excitation.collision.obstacles.ball"
CASES = {
    "no effort": Case(arm(limit(effort=0.0)), (), "limits.effort", (("limits.effort={elbow: 80}",),)),
    "narrow range": Case(
        arm(limit(-0.04, 0.04)), (), "lower limits.position_margin, or hold with robot.locked_joints: {elbow: 0}",
        (("limits.position_margin=0.01",), LOCKED),
    ),
    "no range": Case(arm(limit(0.0, 0.0)), (), "hold with robot.locked_joints: {elbow: 0}", (LOCKED,)),
    "range set to a point": Case(
        arm(), ("limits.position={elbow: [0.2, 0.2]}",), "widen limits.position",
        (("limits.position={elbow: [-0.5, 0.5]}",),),
    ),
    "start beyond the limits": Case(
        arm(), ("--start", "elbow=3"), "move it inside", (("--start", "elbow=1"),),
    ),
    "start beyond the range of the settings": Case(
        arm(), ("limits.position={elbow: [-0.5, 0.5]}", "--start", "elbow=1"), "limits.position",
        (("limits.position={elbow: [-0.5, 1.5]}", "--start", "elbow=1"),),
    ),
    "weak joint": Case(
        arm(), ("limits.effort={elbow: 2}", *WEAK), "start elsewhere",
        (("limits.effort={elbow: 2}", *UPRIGHT), ("limits.effort={elbow: 60}", *WEAK),
         ("robot.locked_joints={elbow: 1.2}", "--start", "shoulder=0")),
    ),
    "friction of the URDF": Case(
        arm(dynamics='<dynamics friction="70"/>'), (), "limits.effort_fraction, or hold with robot.locked_joints",
        (("limits.effort={elbow: 200}",), ("limits.effort_fraction=1",), LOCKED),
    ),
    "upside down on a floor": Case(
        arm(), ("robot.gravity=[0, 0, 9.81]", "excitation.mounting=floor"), "correct one of them",
        (("robot.gravity=[0, 0, 9.81]", "excitation.mounting=ceiling"), ("excitation.mounting=floor",)),
    ),
    "obstacle in the way": Case(
        arm(), (f"{BALL}.shape=sphere", f"{BALL}.radius=0.1", f"{BALL}.xyz=[0.05, 0, 0.8]", *UPRIGHT),
        "start elsewhere",
        ((f"{BALL}.shape=sphere", f"{BALL}.radius=0.1", f"{BALL}.xyz=[0.05, 0, 0.8]", "--start", "shoulder=-1"),),
    ),
    "obstacle of a link's name": Case(
        arm(), tuple(f"{BALL[:-4]}fore.{value}" for value in ("shape=sphere", "radius=0.1", "xyz=[2, 2, 2]")),
        "give the obstacle another name", ((f"{BALL}.shape=sphere", f"{BALL}.radius=0.1", f"{BALL}.xyz=[2, 2, 2]"),),
    ),
    "pair of unknown links": Case(
        arm(), ("excitation.collision.ignored={fore: [nothing]}",), "fore, upper",
        (("excitation.collision.ignored={fore: [base]}",),),
    ),
    "no SRDF": Case(arm(), ("excitation.collision.srdf=nothing.srdf",), "correct collision.srdf", ((),)),
    "support of two corners": Case(
        arm(), ("excitation.balance.support={x: [0, 0.1], y: [0, 0]}",), "give three or more",
        (("excitation.balance.support={x: [-2, 2, 2, -2], y: [-2, -2, 2, 2]}",),),
    ),
    "more parameters than there are": Case(
        arm(), ("excitation.kept_parameters=500",), "lower it, or set 0 for all", (("excitation.kept_parameters=0",),),
    ),
    "unlimited joint without speed": Case(
        arm("", kind="continuous"), (), "limits.velocity",
        (("limits.velocity={elbow: 1}", "limits.effort={elbow: 80}"),),
    ),
    "limit of a locked joint": Case(
        arm(), ("limits.effort={elbow: 2}", *LOCKED), "leave limits.effort.elbow out", (LOCKED,),
    ),
    "unknown joint locked": Case(
        arm(), ("robot.locked_joints={elbo: 0.1}",), "elbow", (("robot.locked_joints={elbow: 0.1}",),),
    ),
    "unknown joint at the start": Case(
        arm(), ("--start", "elbo=1"), "it has shoulder, elbow", (("--start", "elbow=1"),),
    ),
    "misspelt option": Case(
        arm(), ("excitation.duratoin_s=5",), "did you mean duration_s?", (("excitation.duration_s=5",),),
    ),
}  # fmt: skip


def excite(settings: tuple[str, ...], folder: str) -> int:
    """Status of `inertid excite` with settings, or options and their values, over those of a quick search."""
    options, position = ["excite", "--urdf", "robot.urdf", "--output", folder], 0
    given = {setting.partition("=")[0] for setting in settings}
    for key, value in QUICK.items():
        options += [] if key in given else ["--set", f"{key}={value}"]
    while position < len(settings):
        is_option = settings[position].startswith("--")
        options += settings[position : position + 2] if is_option else ["--set", settings[position]]
        position += 1 + is_option
    log_once.cache_clear()
    return cli.main(options)


@pytest.mark.parametrize("name", CASES)
def test_the_remedy_that_a_message_names_helps(tmp_path, monkeypatch, capsys, name):
    case = CASES[name]
    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(case.robot)
    assert excite(case.refused, "refused") == 2
    message = capsys.readouterr().err
    assert case.message in message and len(message.strip().splitlines()) <= 3, message
    for number, remedy in enumerate(case.remedies):
        assert excite(remedy, f"remedy_{number}") == 0, (remedy, capsys.readouterr().err)
        assert yaml.safe_load(Path(f"remedy_{number}/plan.yaml").read_text())["points"]
