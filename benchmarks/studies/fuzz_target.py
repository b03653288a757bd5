"""Fuzz one reader: ``python -m studies.fuzz_target NAME SECONDS SEED FOLDER``; prints its figures as JSON.

With ``atheris`` installed, branches of the package decide about inputs to keep and change again; without it, only
changes of valid content are tried. Inputs that break a bound are written to the folder.
"""

import contextlib
import hashlib
import json
import logging
import os
import random
import resource
import sys
import time
import traceback
import warnings
from pathlib import Path

try:
    import atheris
except ImportError:
    atheris = None

with atheris.instrument_imports(include=["inertid_ros"]) if atheris else contextlib.nullcontext():
    from support.fuzzing.bounds import MEMORY, SECONDS, BrokenBoundError, check
    from support.fuzzing.target import MAX_BYTES, Target
    from support.fuzzing.targets import targets


class Run:
    """Try inputs of one target until its time is up."""

    def __init__(self, target: Target, seconds: float, folder: Path) -> None:
        self.target, self.folder = target, folder
        self.tried = self.accepted = 0
        self.longest = 0.0
        self.broken: dict[str, int] = {}
        self.started = time.monotonic()
        self.seconds, self.begun = seconds, time.process_time()

    def take(self, content: bytes) -> None:
        """Try one input."""
        before = time.process_time()
        self.tried += 1
        try:
            self.accepted += check(self.target.read, content)
        except Exception as error:  # the search is for any error that a reader lets through
            if not str(error).startswith("takes ") or self._takes_too_long(content):
                self._keep(content, error)
        self.longest = max(self.longest, time.process_time() - before)
        if time.monotonic() - self.started > self.seconds:
            self.end()

    def _takes_too_long(self, content: bytes) -> bool:
        """Whether an input takes too long a second time; a busy machine may delay any input."""
        try:
            check(self.target.read, content)
        except BrokenBoundError:
            return True
        return False

    def end(self) -> None:
        """Print the figures and leave, from within the fuzzer's loop."""
        taken = time.monotonic() - self.started
        figures = {
            "name": self.target.name, "guided": atheris is not None, "tried": self.tried, "accepted": self.accepted,
            "seconds": taken, "processor_s": time.process_time() - self.begun, "longest": self.longest,
            "broken": self.broken,
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
        }  # fmt: skip
        os.write(FIGURES, (json.dumps(figures) + "\n").encode())
        os._exit(0)

    def _keep(self, content: bytes, error: Exception) -> None:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/inertid_ros/" in frame.filename]
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else str(error)[:60]
        key = f"{error.__class__.__name__} {place}"
        if key not in self.broken:
            name = hashlib.sha256(key.encode()).hexdigest()[:12]
            (self.folder / f"{self.target.name}-{name}").write_bytes(content)
        self.broken[key] = self.broken.get(key, 0) + 1


def main(name: str, seconds: str, seed: str, folder: str) -> None:
    """Fuzz the target of this name."""
    target = next(each for each in targets() if each.name == name)
    run = Run(target, float(seconds), Path(folder))
    for content in target.seeds:
        run.take(content)
    if atheris is None:
        rng, kept = random.Random(int(seed)), list(target.seeds)
        while True:
            content = target.changed(rng.choice(kept), rng)
            before = run.accepted
            run.take(content)
            if run.accepted > before and len(kept) < 1000:
                kept.append(content)
    seeds = Path(folder) / f"{name}-seeds"
    seeds.mkdir(exist_ok=True)
    for index, content in enumerate(target.seeds):
        (seeds / str(index)).write_bytes(content)

    def changed(content: bytes, _most: int, number: int) -> bytes:
        rng = random.Random(number)
        if rng.random() < 0.4:  # changes of valid inputs are refused less often than inputs with new branches
            content = rng.choice(target.seeds)
        return bytes(atheris.Mutate(content, MAX_BYTES)) if rng.random() < 0.2 else target.changed(content, rng)

    options = [f"-seed={seed}", f"-max_len={MAX_BYTES}", f"-timeout={round(2 * SECONDS)}", "-verbosity=0"]
    options += ["-mutate_depth=1", "-len_control=0", f"-rss_limit_mb={4 * MEMORY // 2**20}"]
    options += [f"-artifact_prefix={folder}/{name}-crash-"]
    atheris.Setup([sys.argv[0], *options, str(seeds)], run.take, custom_mutator=changed)
    atheris.Fuzz()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    FIGURES = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries in C report each bad input there
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    main(*sys.argv[1:])
