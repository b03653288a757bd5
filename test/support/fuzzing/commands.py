"""Commands of ``inertid`` with valid and changed files, and the bounds that every run must keep."""

import io
import json
import random
import shutil
import time
import unicodedata
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pinocchio as pin
import yaml
from support.recordings.synthetic import inverse_dynamics, random_motion
from support.recordings.synthetic_calibration import Case, synthetic_case
from support.robots.free_base import free_model
from support.robots.quick_plans import quick_plan

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.cli import main as cli
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.excitation import LimitOptions
from inertid_ros.config.robot import ContactOptions
from inertid_ros.data.files.loading import write_npz
from inertid_ros.data.recording import Recording
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.plan import plan_text
from inertid_ros.report.results import Result
from inertid_ros.robot.model import RobotModel
from inertid_ros.simulation.export import export

from .bounds import BrokenBoundError, LateError, memory_limit, time_limit
from .targets import targets
from .values import NAMES, NUMBERS, changed_bytes, changed_data

RUN_S = 10.0  # of the processor
_STATUSES = (0, 2, 3)
_KP = 200.0  # N m/rad
# Planning in the time of a test; changed configurations may undo this.
_QUICK = ["--set", "excitation.starts=1", "--set", "excitation.improved=1", "--set", "excitation.iterations=1"]
_FORMATS = {
    ".urdf": "urdf", ".xml": "urdf", ".npz": "npz", ".mcap": "mcap", ".db3": "sqlite", ".yaml": "configuration",
    ".plan.yaml": "plan",
}  # fmt: skip
# Arguments of each command; words in braces are inputs, and words behind @ outputs.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "info": ("info {recording}", "info {urdf}", "info {result}", "info {recording} --config {configuration} --json"),
    "identify": (
        "identify {recording} --urdf {urdf} --output @out", "identify {recording} --urdf {urdf} --output @out --json",
        "identify {recording} --urdf {urdf} --validate {recording} --config {configuration} --output @out",
        "identify {recording} --urdf {urdf} --prior {result} --output @out",
        "identify {recording} --urdf {urdf} --config {gains} --output @out",
    ),
    "validate": ("validate {result} {recording}", "validate {urdf} {recording} --config {configuration}"),
    "excite": (
        "excite --urdf {urdf} --check {plan}", "excite --urdf {urdf} --output @out",
        "excite --urdf {urdf} --config {configuration} --output @out",
    ),
    "predict": (
        "predict {result} {plan} --fill @filled.yaml", "predict {result} {plan} --json",
        "predict {result} {recording} --table @causes.csv", "predict {floating} {flight} --table @causes.csv",
        "predict {floating} {flight} --json"),
    "export": (
        "export {result} --to mjcf --output @robot.xml", "export {result} --to csv --output @parameters.csv",
        "export {result} --to drake --output @robot.urdf", "export {result} --samples 3 --output @samples.csv",
        "export {result} --to isaaclab --output @drives.yaml",
        "export {result} --to mjcf --onto {mjcf} --output @robot.xml"),
    "payload": (
        "payload {result} {recording}", "payload {result} {recording} --reference {recording} --output @p.json"),
    "force-sensor": (
        "force-sensor {carried} --urdf {urdf} --frame link1 --output @sensor.yaml",
        "force-sensor {turned} --output @sensor.yaml"),
    "convert": ("convert {recording} @out.npz", "convert {recording} @out", "convert {recording} @out.mcap"),
    "init": ("init {urdf} --output @first.yaml", "init {urdf} --recording {recording} --output @first.yaml"),
    "report": ("report {result}", "report {result} --html @page.html", "report --compare {result} {result}"),
    "perturb": ("perturb {urdf} --output @other.urdf",),
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A run of a command that kept all bounds."""

    command: str
    status: int
    seconds: float


def _with_further_channels(case: Case) -> tuple[Recording, Recording]:
    """The first recording with commands of soft drives, and with the weight of a tool on the last link."""
    recording, model = case.recordings[0], case.truth.pinocchio
    data, force = model.createData(), np.array([0.0, 0.0, 9.81])
    forces = []
    for q in recording.position:
        pin.framesForwardKinematics(model, data, q)
        forces.append(data.oMf[model.getFrameId("link1")].rotation.T @ force)
    weight = np.hstack([forces, np.cross([0.01, 0.02, 0.1], forces)])
    commands = recording.position + recording.effort / _KP
    return replace(recording, command_position=commands), replace(recording, wrenches={"tool": weight})


def _flight() -> tuple[RobotModel, Recording]:
    """A robot with a sensor between its base and what moves it."""
    robot = free_model(1, 2, contacts={"tool": ContactOptions("base")}, drive_terms=())
    model, time = robot.pinocchio, np.arange(0.0, 4.0, 0.01)
    v, a, _ = random_motion(np.random.default_rng(0), 8, base_hz=0.3).sample(time)
    q = [pin.neutral(model)]
    for before, after in pairwise(v):
        q.append(pin.integrate(model, q[-1], 0.005 * (before + after)))
    tau, states = inverse_dynamics(robot, np.array(q), v, a), np.array(q)
    channels = {"wrenches": {"tool": tau[:, :6]}, "base_pose": states[:, :7]}
    return robot, Recording(robot.joint_names, time, states[:, 7:], tau[:, 6:], **channels)


class CommandFuzzer:
    """Valid files of a robot of two joints in a folder, and runs of commands with some of them changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._targets = {target.name: target for target in targets()}
        case = synthetic_case(3, joints=2, duration=4.0)
        (folder / "valid").mkdir()
        valid = folder / "valid"
        (valid / "robot.urdf").write_text(case.given.urdf)
        commanded, carried = _with_further_channels(case)
        write_npz(commanded, valid / "motion.npz")
        write_npz(carried, valid / "carried.npz")
        for name in ("motion.mcap", "motion.db3"):
            with redirect_stdout(io.StringIO()):
                status = cli.main(["convert", str(valid / "motion.npz"), str(valid / name)])
            if status:
                raise RuntimeError(f"{name} was not written")
        limits = motion_limits(case.given, LimitOptions(default_velocity=1.0, default_acceleration=4.0))
        plan = quick_plan(limits, (limits.lower + limits.upper) / 2, 1, model_hash=case.given.hash)
        (valid / "motion.plan.yaml").write_text(plan_text(plan))
        (valid / "options.yaml").write_text(yaml.safe_dump({"prepare": {"cutoff_hz": 5.0}, "robot": {"base": "fixed"}}))
        stiff, none = (dict.fromkeys(case.given.joint_names, gain) for gain in (_KP, 0.0))
        gains = {"effort": "position_command", "command_kp": stiff, "command_kd": none}
        (valid / "gains.yaml").write_text(yaml.safe_dump({"prepare": {"cutoff_hz": 5.0}, "robot": gains}))
        calibrate(case.given, case.recordings[:1], case.recordings[1:]).save(valid / "result")
        (valid / "robot.xml").write_text(export(Result.load(valid / "result"), "mjcf").text)
        floating, flight = _flight()
        write_npz(flight, valid / "flight.npz")
        calibrate(floating, [flight], configuration=Configuration(robot=floating.options)).save(valid / "floating")
        recordings = ("motion.npz", "motion.mcap", "motion.db3")
        self._files = {
            "urdf": ("robot.urdf",), "recording": recordings, "configuration": ("options.yaml",),
            "plan": ("motion.plan.yaml",), "result": ("result",), "gains": ("gains.yaml",), "mjcf": ("robot.xml",),
            "floating": ("floating",), "flight": ("flight.npz",), "turned": ("flight.npz",),
            "carried": ("carried.npz",),
        }  # fmt: skip

    def run(self, seed: int) -> Run:
        """Run the command of a seed.

        Raises BrokenBoundError: another status than 0, 2 and 3, more than the time or the memory, an error of several
        lines, or control characters in the output.
        """
        rng = random.Random(seed)
        command = rng.choice(list(COMMANDS))
        folder = self.folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        words = rng.choice(COMMANDS[command]).split()
        arguments = [self._argument(word, folder, rng) for word in words]
        arguments += _QUICK if command == "excite" else []
        out, err = io.StringIO(), io.StringIO()
        begun = time.process_time()
        try:
            with time_limit(RUN_S), memory_limit(), redirect_stdout(out), redirect_stderr(err):
                status = cli.main(arguments)
        except SystemExit as error:
            status = int(error.code or 0)
        except LateError:
            raise BrokenBoundError(f"{command}: takes longer than {RUN_S:g} s") from None
        check_output(command, status, out.getvalue(), err.getvalue())
        return Run(command, status, time.process_time() - begun)

    def _argument(self, word: str, folder: Path, rng: random.Random) -> str:
        """Argument of a word of a command; a valid or changed input file, or no file, is put into the folder."""
        if word.startswith("@"):
            return str(folder / word[1:])
        if not word.startswith("{"):
            return word
        name = rng.choice(self._files[word[1:-1]])
        chance, path = rng.random(), folder / f"{rng.randrange(1000)}_{name}"
        source = self.folder / "valid" / name
        if chance < 0.03:
            return str(folder / rng.choice([other for other in NAMES if "\0" not in other and len(other) < 200]))
        if source.is_dir():
            shutil.copytree(source, path)
            if chance > 0.3:
                file = rng.choice(sorted(file for file in path.iterdir() if file.suffix in (".yaml", ".json", ".npz")))
                file.write_bytes(self._changed(file, rng))
        else:
            path.write_bytes(source.read_bytes() if chance < 0.3 else self._changed(source, rng))
        return str(path)

    def _changed(self, file: Path, rng: random.Random) -> bytes:
        content = file.read_bytes()
        if file.suffix == ".json":
            return json.dumps(changed_data(json.loads(content), rng)).encode()
        formats = ("".join(file.suffixes[-2:]), file.suffix)
        target = self._targets[next(_FORMATS[suffix] for suffix in formats if suffix in _FORMATS)]
        if target.restructured is not None and rng.random() < 0.7:
            with suppress(Exception):  # such as an archive that is no bag of the expected form
                return target.restructured(content, rng)
        words = (*target.words, *(number.encode() for number in NUMBERS))
        return changed_bytes(content, rng, [content], words)


def check_output(command: str, status: int, out: str, err: str) -> None:
    """Raise BrokenBoundError unless status and output are those of a success or of a refusal in one line."""
    if status not in _STATUSES:
        raise BrokenBoundError(f"{command}: status {status}: {err.strip()[-300:]}")
    control = {each for each in out + err if unicodedata.category(each) in ("Cc", "Cs") and each not in "\n\t"}
    if control:
        raise BrokenBoundError(f"{command}: control characters {control!r} in the output")
    errors = [line for line in err.splitlines() if line.startswith("inertid: error:")]
    if status == 2 and (len(errors) != 1 or err.splitlines()[-1] != errors[0]):
        raise BrokenBoundError(f"{command}: refused without one line: {err.strip()[-300:]!r}")
    if "Traceback" in err or "Warning: " in err:
        raise BrokenBoundError(f"{command}: traceback or warning of Python: {err.strip()[-300:]}")
