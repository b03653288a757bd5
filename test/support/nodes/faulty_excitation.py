"""The excitation node with a callback that raises once a file appears: ``python faulty_excitation.py FILE ...``."""

import sys
from pathlib import Path

from inertid_ros.nodes.excitation.node import Excitation, main

TRIGGER = Path(sys.argv.pop(1))
report = Excitation.report


def faulty(self: Excitation) -> None:
    """Raise once the file is there."""
    if TRIGGER.exists():
        raise RuntimeError("made to fail")
    report(self)


Excitation.report = faulty  # type: ignore[method-assign]
sys.exit(main())
