"""Compile the C++ programs of test/cpp, and run the C++ dynamics on robots, parameters and states."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support.paths import ROOT

from inertid_ros.config.robot import DRIVE_TERMS
from inertid_ros.core.arrays import Array
from inertid_ros.robot.layout import COUPLING_TERMS
from inertid_ros.robot.model import RobotModel

SOURCES = ROOT / "test" / "cpp"
_CACHE = ROOT / ".pytest_cache" / "cpp"
_KINDS = {"JointModelF": "free", "JointModelP": "prismatic", "JointModelR": "revolute"}
_PINOCCHIO = (  # as its CMake target has them; the program uses what the library has compiled
    "BOOST_MPL_LIMIT_LIST_SIZE=30", "BOOST_MPL_LIMIT_VECTOR_SIZE=30", "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "BOOST_FUSION_INVOKE_MAX_ARITY=12", "PINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION",
)  # fmt: skip


def compiled(source: str, *options: str) -> Path:
    """Compile a program of test/cpp against the headers, unless an earlier run has compiled the same.

    Skips where there is no compiler or a header is missing.
    """
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        pytest.skip("NO C++ COMPILER: the headers of include/ were not tested; install g++ or set CXX")
    command = [compiler, "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", f"-I{SOURCES}"]
    command += [str(SOURCES / source), *options]
    program = _CACHE / f"{Path(source).stem}_{_state(command)}"
    if not program.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        made = program.with_suffix(f".{os.getpid()}")
        done = subprocess.run([*command, "-o", made], capture_output=True, text=True)
        if missing := re.search(r"fatal error: (.*): No such file", done.stderr):
            pytest.skip(f"NO {missing[1]}: the headers of include/ were not tested; run 'make setup'")
        assert done.returncode == 0, done.stderr[:3000]
        made.rename(program)
    return program


def _state(command: list[str]) -> str:
    """Hash of all that a program follows from: command, compiler, headers, messages, versions of libraries."""
    state = hashlib.sha256(repr(command).encode())
    state.update(subprocess.run([command[0], "--version"], capture_output=True, check=True).stdout)
    for folder in (SOURCES, *(ROOT / name for name in ("include", "msg", "requirements"))):
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            state.update(file.read_bytes())
    return state.hexdigest()[:16]


def compiled_dynamics() -> Path:
    """Compile test/cpp/dynamics.cpp with Pinocchio, Eigen and the generated messages."""
    prefix = next((Path(site) / "cmeel.prefix" for site in sys.path if (Path(site) / "cmeel.prefix").is_dir()), Path())
    messages = [Path(prefix).parents[3] / "include", *(Path(path) / "include" for path in _ament_prefixes())]
    folders = [folder for parent in messages if parent.is_dir() for folder in sorted(parent.iterdir())]
    headers = [prefix / "include", prefix / "include" / "eigen3", *folders]
    return compiled(
        "dynamics.cpp", *(f"-D{name}" for name in _PINOCCHIO), *(f"-isystem{path}" for path in headers),
        f"-L{prefix / 'lib'}", "-lpinocchio_default", f"-Wl,-rpath,{prefix / 'lib'}")


def _ament_prefixes() -> list[str]:
    return list(filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)))


@dataclass(frozen=True)
class Case:
    """A robot, its ``InertialParameters`` and states ``(N, nq), (N, nv), (N, nv)`` for the C++ program."""

    model: RobotModel
    message: object
    states: tuple[Array, Array, Array]
    continuous: bool = False  # joints have cosine and sine in place of their angle
    only_use: bool = False

    def text(self) -> str:
        """Case as test/cpp/dynamics.cpp reads it."""
        hash_and_use = f"{json.dumps(self.model.hash)} {int(self.only_use)}\n"
        q, v, a = self.states
        if self.continuous:
            q = np.stack([np.cos(q), np.sin(q)], axis=-1).reshape(len(q), -1)
        rows = "\n".join(_numbers(row) for row in np.hstack([q, v, a]))
        return f"{self._joints()}{hash_and_use}{_parameters(self.message)}{len(q)}\n{rows}\n"

    def _joints(self) -> str:
        model, lines = self.model.pinocchio, [str(self.model.pinocchio.njoints - 1)]
        for index, axes in enumerate(self.model.axes, start=1):
            joint, placement = model.joints[index], model.jointPlacements[index]
            kind = "continuous" if self.continuous else _KINDS[joint.shortname()[:11]]
            axis = axes[:3] if kind == "prismatic" else axes[3:]
            limits = [limit[joint.idx_q] for limit in (model.lowerPositionLimit, model.upperPositionLimit)]
            numbers = _numbers([*axis, *placement.translation, *placement.rotation.ravel(), *limits])
            lines.append(f"{json.dumps(model.names[index])} {json.dumps(kind)} {model.parents[index]} {numbers}")
        return "\n".join([*lines, _numbers(model.gravity.linear), ""])


@dataclass(frozen=True)
class Outcome:
    """Torques ``(N, nv)``, median seconds of an inverse dynamics, allocations in control steps; or the refusal."""

    refused: str = ""
    seconds: float = np.nan
    allocations: int = 0
    torque: Array | None = None
    gravity: Array | None = None
    friction: Array | None = None


def outcomes(program: Path, cases: Iterable[Case]) -> list[Outcome]:
    """Run the cases in one process."""
    cases = list(cases)
    text = f"{len(cases)}\n" + "".join(case.text() for case in cases)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-1000:]
    lines, results = iter(done.stdout.splitlines()), []
    for line in lines:
        if not (ran := re.fullmatch(r"(\d+) states, (\S+) s, (\d+) allocations", line)):
            results.append(Outcome(line))
            continue
        count = int(ran[1])
        values = np.array([next(lines).split() for _ in range(count)], dtype=float).reshape(count, 3, -1)
        results.append(Outcome("", float(ran[2]), int(ran[3]), *np.moveaxis(values, 1, 0)))
    return results


def _numbers(values: Iterable[float]) -> str:
    return " ".join(repr(float(value)) for value in values)


def _parameters(message) -> str:
    lines = [f"{json.dumps(message.model_hash)} {message.verdict} {message.validation_status}", str(len(message.links))]
    for link in message.links:
        numbers = _numbers([link.mass, link.com.x, link.com.y, link.com.z, *link.inertia])
        lines.append(f"{json.dumps(link.name)} {numbers}")
    lines.append(str(len(message.joints)))
    for joint in message.joints:
        terms = (*DRIVE_TERMS, "stribeck_speed", "transition_speed")
        lines.append(f"{json.dumps(joint.name)} {_numbers(getattr(joint, term) for term in terms)}")
    lines.append(str(len(message.couplings)))
    for drive in message.couplings:
        names = f"{len(drive.joints)} {' '.join(map(json.dumps, drive.joints))}"
        ratios, terms = _numbers(drive.ratios), _numbers(getattr(drive, term) for term in COUPLING_TERMS)
        lines.append(f"{json.dumps(drive.name)} {names} {len(drive.ratios)} {ratios} {terms}")
    lines.append(str(len(message.terms)))
    for term in message.terms:
        texts = f"{len(term.expressions)} {' '.join(map(json.dumps, term.expressions))}"
        name, joint = json.dumps(term.name), json.dumps(term.joint)
        lines.append(f"{name} {joint} {texts} {len(term.values)} {_numbers(term.values)}")
    return "\n".join([*lines, ""])
