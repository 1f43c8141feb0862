"""`pres report`: a run, or everything that a folder of results holds, as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pres.cli.console import print_json, say
from pres.cli.evaluate import about, evaluated, keep
from pres.cli.source import AsJson, Debug, RunSource
from pres.errors import PresError


def report(
    runs: Annotated[
        Path, typer.Argument(help="The folder of a run, one with runs in it, or that of `pres reproduce`.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write it here.  \\[default: report.html in the folder]")
    ] = None,
    evaluate: Annotated[
        bool, typer.Option(help="Evaluate a run that was not evaluated yet, and keep that in its folder?")
    ] = True,
    source: RunSource = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show a run, or all that a folder of results holds, as one self-contained HTML file.

    Of a run it shows the learning curve, and how good the run is beside EdgeBank and popularity. Tables
    sort, figures zoom, every setting is there.
    """
    from pres.paper.report.contents import EVALUATION, evaluation_of, gather
    from pres.paper.report.write import check_html, write_report
    from pres.training.folder import RunFolder

    path = check_html(runs / "report.html" if out is None else out)
    gather(runs)  # that there is nothing to report is said first
    if evaluate and RunFolder(runs).finished and evaluation_of(runs) is None:
        try:
            found = evaluated(runs, staleness="batch", source=source)
            keep(about(runs, found), runs / EVALUATION)
        except PresError as error:  # its events may be gone, or be the user's own
            say(f"not evaluated: {error}")
    write_report(runs, path)
    say(f"report: {path}")
    if as_json:
        print_json({"report": str(path), "bytes": path.stat().st_size})
