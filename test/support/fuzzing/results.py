"""Target that is a result directory: parameters and report, read, printed and continued."""

import contextlib
import io
import json
import random
import tempfile
from functools import cache
from pathlib import Path

from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.calibration.earlier_result import earlier_fit, earlier_result
from inertid_ros.cli import main as cli
from inertid_ros.core.errors import InertidError
from inertid_ros.report.results import PARAMETERS, REPORT, Result
from inertid_ros.robot.model import RobotModel

from .target import Target
from .texts import YAML_WORDS, other_yaml
from .values import changed_data

_FILES = {b"parameters": PARAMETERS, b"report": REPORT}


@cache
def _result() -> tuple[RobotModel, Path, tempfile.TemporaryDirectory[str]]:
    case = synthetic_case(3, joints=1, duration=4.0)
    folder = tempfile.TemporaryDirectory()
    outcome = calibrate(case.given, case.recordings[:1], case.recordings[1:])
    return case.given, outcome.save(Path(folder.name) / "result"), folder


@cache
def _good() -> dict[bytes, bytes]:
    return {key: (_result()[1] / name).read_bytes() for key, name in _FILES.items()}


def _read(content: bytes) -> object:
    """The first line names the file, the rest is its content; the other file is good."""
    which, _, text = content.partition(b"\n")
    model, path, _folder = _result()
    for key, name in _FILES.items():
        (path / name).write_bytes(text if key == which else _good()[key])
    result = Result.load(path)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(["report", str(path)])
    if status not in (0, 2):
        raise AssertionError(err.getvalue())
    refused = [InertidError(err.getvalue().strip())] if status == 2 else []
    for use in (lambda: earlier_fit(path, model, ()), lambda: earlier_result(path, model)):
        try:
            use()
        except InertidError as error:
            refused.append(error)
    if refused:
        raise refused[0]
    return result


def _other(content: bytes, rng: random.Random) -> bytes:
    which, _, text = content.partition(b"\n")
    if which == b"report":
        return which + b"\n" + json.dumps(changed_data(json.loads(text), rng)).encode()
    return which + b"\n" + other_yaml(text, rng)


def result_targets() -> list[Target]:
    """Readers of results."""
    return [Target("result", _read, lambda: [key + b"\n" + text for key, text in _good().items()], _other, YAML_WORDS)]
