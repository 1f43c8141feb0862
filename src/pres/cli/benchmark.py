"""`pres benchmark`: training speed beside PyG's TGN, on this machine; in a clone of the project only."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from pres.cli.console import print_json
from pres.cli.source import AsJson, Debug
from pres.errors import OptionError


def _clone() -> Path | None:
    """Return the clone of the project that this is run from or in; benchmarks are not in the wheel."""
    here = (Path(__file__).parents[3], Path.cwd())
    return next((folder for folder in here if (folder / "benchmarks" / "peers.py").is_file()), None)


FOLDER = _clone()


def benchmark(
    batch_size: Annotated[
        list[int] | None, typer.Option(help="Repeatable.  \\[default: 200, 600 and 2400]")
    ] = None,
    events: Annotated[int, typer.Option(help="Training events, the first of Wikipedia.", min=1)] = 24_000,
    rounds: Annotated[int, typer.Option(help="Rounds in turns, of which the median counts.", min=1)] = 5,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Train TGN, JODIE and APAN in turns with PyG's TGN; show events per second, memory and the ratio.

    It wants PyG and a quiet machine. `make bench` measures everything else too.
    """
    sizes = batch_size or [200, 600, 2_400]
    if min(sizes) < 1 or events < max(sizes):
        raise OptionError(f"batches of {max(sizes):,} events do not fit in {events:,}: one or more each.")
    if importlib.util.find_spec("torch_geometric") is None:
        raise OptionError(
            "this compares with PyG, which is not installed: in the clone of the project, "
            f"{sys.executable} -m pip install -c constraints.txt '.[pyg]'."
        )
    with tempfile.TemporaryDirectory() as scratch:
        found = Path(scratch) / "found.json"
        numbers = ["--events", events, "--rounds", rounds, "--batch-sizes", *sizes, "--json", found]
        command = [sys.executable, "-m", "benchmarks.peers", *map(str, numbers)]
        done = subprocess.run(command, cwd=FOLDER, stdout=sys.stderr if as_json else None, check=False)
        if done.returncode:
            raise OptionError(f"the benchmark ended with exit code {done.returncode}; what it said is above.")
        if as_json:
            print_json({"peers": json.loads(found.read_text())})
