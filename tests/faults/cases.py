"""Runs cases of malformed input in one process, and tells of each on standard output.

``python -m tests.faults.cases FOLDER KIND:SEED …`` runs them one after the other; a line of JSON each.
"""

from __future__ import annotations

import io
import json
import os
import random
import resource
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.faults.malformed_inputs import KINDS


def peak(reset: bool = False) -> int:
    """The most resident memory since the last reset, in bytes; 0 where the system does not tell."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def tell(folder: Path, name: str) -> dict[str, Any]:
    """What came of a case: its exit code, what it said, its processor time and its peak of memory."""
    from pres.cli import commands, console

    kind = name.partition(":")[0]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(folder)
    arguments = KINDS[kind](random.Random(name), folder)
    said = console.stderr.file = io.StringIO()
    before = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    peak(reset=True)
    code: int | str
    try:
        code = commands.run(arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        code = f"{type(error).__name__}: {error}"
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - before
    lines = [line for line in said.getvalue().splitlines() if not line.startswith("note: ")]
    told = {"case": name, "code": code, "said": lines, "seconds": round(used, 2), "peak": peak()}
    return told | {"arguments": [argument[:60] for argument in arguments]}


def main() -> None:
    """Run the cases that the arguments name."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    import pres.cli.train  # what a command imports is not of the first case
    import pres.training  # noqa: F401

    for name in sys.argv[2:]:
        out.write(json.dumps(tell(Path(sys.argv[1]), name)) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
