"""Write parameter files and their reference."""

import argparse
import sys
from pathlib import Path

from inertid_ros.core.outputs import write_file

from .reference_pages import PAGES
from .yaml_text import FILES, render


def main() -> int:
    """Write all files into the folders given."""
    parser = argparse.ArgumentParser(description="write parameter files, and with --docs their reference")
    parser.add_argument("folder", nargs="?", default="config", help="of the parameter files")
    parser.add_argument("--docs", help="folder of the reference pages")
    arguments = parser.parse_args()
    for name in FILES:
        write_file(Path(arguments.folder) / f"{name}.yaml", render(name).encode(), force=True)
    if arguments.docs:
        for name, page in PAGES.items():
            write_file(Path(arguments.docs) / name, page().encode(), force=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
