"""`pres report`: everything that a folder of results holds, as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pres.cli.console import print_json, say
from pres.cli.source import AsJson, Debug


def report(
    runs: Annotated[Path, typer.Argument(help="The folder of `pres reproduce`, or one with saved runs.")],
    out: Annotated[
        Path | None, typer.Option(help="Write it here.  \\[default: report.html in the folder]")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write one self-contained HTML file: tables that sort, figures that zoom, every setting."""
    from pres.paper.report.write import write_report

    path = write_report(runs, out)
    say(f"report: {path}")
    if as_json:
        print_json({"report": str(path), "bytes": path.stat().st_size})
