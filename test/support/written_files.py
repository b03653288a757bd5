"""Every report.json, parameters.yaml and plan.yaml that a test writes in its own process has the form of its schema."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from inertid_ros.cli import excite
from inertid_ros.core.formats import read_json
from inertid_ros.report import results
from inertid_ros.report.results import SCHEMAS, schema_of

Write = Callable[[Path, str, Mapping[str, bytes], bool | None], None]
_MATRICES = ("covariance", "points")  # long, and the same in every row
_ROWS = 3
_FURTHER_ROWS = re.compile(rf"^((?:{'|'.join(_MATRICES)}):\n(?: *- .*\n){{{_ROWS}}})(?: *- .*\n)+", re.M)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def validator(file: str) -> Draft202012Validator:
    """Validator of a file that the package writes."""
    return Draft202012Validator(schema_of(file))


def violations(file: str, content: bytes) -> list[str]:
    """What in a file is not as its schema has it, at most ten lines."""
    text = content.decode()
    is_json = file.endswith(".json")
    data = read_json(text) if is_json else yaml.load(_FURTHER_ROWS.sub(r"\1", text), Loader=_LOADER)
    data |= {name: data[name][:_ROWS] for name in _MATRICES if name in data}
    errors = list(validator(file).iter_errors(data))[:10]
    return [f"{file}: {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in errors]


def _checking(write: Write) -> Write:
    def checked(target: Path, kind: str, files: Mapping[str, bytes], force: bool | None = None) -> None:
        write(target, kind, files, force)
        found = [line for file in SCHEMAS if file in files for line in violations(file, files[file])]
        assert not found, "\n".join(found)

    return checked


@pytest.fixture(scope="session", autouse=True)
def written_files_have_their_schema() -> Iterator[None]:
    """Check all results and plans that tests write."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (results, excite):
            patch.setattr(module, "write_directory", _checking(module.write_directory))
        yield
