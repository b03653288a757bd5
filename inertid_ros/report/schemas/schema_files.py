"""JSON Schemas of report.json, parameters.yaml and plan.yaml (draft 2020-12)."""

import json
from importlib import resources
from typing import Any

SCHEMAS = {
    "report.json": "report.schema.json",
    "parameters.yaml": "parameters.schema.json",
    "plan.yaml": "plan.schema.json",
}
"""File that the package writes to the name of its schema."""


def schema_of(file: str) -> dict[str, Any]:
    """Schema of a file.

    Parameters
    ----------
    file : str
        A key of :data:`SCHEMAS`.
    """
    text = (resources.files(__package__) / SCHEMAS[file]).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
