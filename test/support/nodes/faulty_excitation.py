"""The excitation node with a callback that raises once a file appears: ``python faulty_excitation.py FILE ...``."""

import sys
from pathlib import Path

from inertid_ros.nodes.excitation.goals import ExciteGoals
from inertid_ros.nodes.excitation.node import main

TRIGGER = Path(sys.argv.pop(1))
look_around = ExciteGoals.look_around


def faulty(self: ExciteGoals) -> None:
    """Raise once the file is there."""
    if TRIGGER.exists():
        raise RuntimeError("made to fail")
    look_around(self)


ExciteGoals.look_around = faulty  # type: ignore[method-assign]
sys.exit(main())
