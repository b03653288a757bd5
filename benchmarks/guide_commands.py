"""Run every command of the README and the guides that needs only a computer, including commands that tests skip.

    python benchmarks/guide_commands.py [--page own_arm]

It prints the processor time of every block, and ends at the first command with a status other than 0.
"""

import argparse
import tempfile
import time
from pathlib import Path

from support.guides import FIRST, PAGES, begin, blocks, run


def main() -> None:
    """Run each page in a separate folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", default="", help="name of a page (default: all pages)")
    wanted = parser.parse_args().page
    with tempfile.TemporaryDirectory() as scratch:
        first = Path(scratch) / FIRST.stem
        for page in [FIRST, *(page for page in PAGES if page != FIRST)]:
            if page != FIRST and wanted not in ("", page.stem):
                continue
            folder = Path(scratch) / page.stem
            folder.mkdir()
            if page != FIRST:
                begin(page, first, folder)
            for block in blocks(page):
                if block.reason in ("", "slow"):
                    started = time.process_time()
                    run(block, folder)
                    print(f"{time.process_time() - started:7.2f} s  {block}  {block.text.splitlines()[0]}", flush=True)


if __name__ == "__main__":
    main()
