"""A report as one HTML file: styles, script, tables and pictures inside, nothing to fetch."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from pres.errors import OptionError
from pres.paper.report.contents import gather
from pres.storage import write_whole


def write_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of a folder of results, by default as ``report.html`` inside it; return where."""
    folder = Path(folder)
    path = check_html(folder / "report.html" if out is None else Path(out))
    text = render(folder)
    return write_whole(path, lambda unfinished: unfinished.write_text(text, encoding="utf-8"))


def check_html(path: Path) -> Path:
    """Return the path of a report, which must be named as one."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"{path}: a report is written as .html; give a name that ends so.")
    return path


def render(folder: Path) -> str:
    """Return the report as text; the same results give the same text."""
    environment = Environment(
        loader=PackageLoader("pres.paper.report"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    here = files("pres.paper.report") / "templates"
    return environment.get_template("report.html").render(
        contents=gather(folder),
        style=(here / "report.css").read_text(encoding="utf-8"),
        script=(here / "report.js").read_text(encoding="utf-8"),
    )
