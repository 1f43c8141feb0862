"""Numbers in Markdown that are made from kept results, never typed.

    python -m pres.paper.experiments.generated docs/results README.md docs/*.md
    python -m pres.paper.experiments.generated docs/results README.md docs/*.md --from runs/reproduce-quick

What stands between ``<!-- generated: quick/table1 -->`` and ``<!-- end -->`` is the table of that experiment
at that budget; ``<!-- generated: quick/table1 findings -->`` is what it comes to, and
``<!-- generated: quick/findings -->`` that of all. The second line first takes over the results of a
reproduction.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from pres.errors import PresError, SourceNotFoundError, nearest
from pres.paper.experiments.evidence import Evidence, EvidenceFolder
from pres.paper.experiments.registry import EXPERIMENTS
from pres.storage import write_bytes

_BLOCK = re.compile(r"(<!-- generated: (?P<what>[^>]+?) -->\n).*?(<!-- end -->)", flags=re.DOTALL)


def regenerated(text: str, folder: Path) -> str:
    """Return Markdown with every generated block made anew from the results in ``folder``, by budget."""

    def block(found: re.Match[str]) -> str:
        budget, _, what = found["what"].partition("/")
        return f"{found[1]}{_content(what, EvidenceFolder(folder / budget))}\n{found[3]}"

    return _BLOCK.sub(block, text)


def update(pages: Sequence[Path], folder: Path) -> list[Path]:
    """Make the generated blocks of pages anew; return the pages that changed."""
    changed = []
    for page in pages:
        before = page.read_text(encoding="utf-8")
        text = regenerated(before, folder)
        if text != before:
            changed.append(write_bytes(page, text.encode()))
    return changed


def take_over(results: Path, folder: Path) -> list[str]:
    """Copy evidence and pictures of a reproduction, each picture in one form; return what there is of.

    They go into the folder of their budget.
    """
    taken = EvidenceFolder(results)
    for name in taken.names():
        evidence = taken.read(name)
        files = [f"evidence/{name}.json", f"evidence/{name}.parquet"]
        files += [f"figures/{figure}" for figure in evidence.drawn]
        for file in files:
            if (results / file).exists():
                write_bytes(folder / evidence.budget / file, (results / file).read_bytes())
    return taken.names()


def _content(what: str, kept: EvidenceFolder) -> str:
    name, _, part = what.partition(" ")
    known = kept.names()
    if what == "findings":
        found = [kept.read(one) for one in EXPERIMENTS if one in known]
        return "\n".join(_said(one) for one in found if one.findings)
    if name not in known or part not in ("", "findings"):
        raise SourceNotFoundError(
            f"{kept.root} has nothing for 'generated: {what}'.{nearest(name, known)} There are "
            f"{', '.join(known)}, each also with the word 'findings'."
        )
    evidence = kept.read(name)
    if part:
        return "\n".join(f"- {line}" for line in evidence.findings)
    about = f"*{evidence.protocol}* Again: `{evidence.command}`."
    return f"{about}\n\n{evidence.table.markdown()}" if evidence.table.rows else about


def _said(evidence: Evidence) -> str:
    """Return one item: what the paper says, and what was found."""
    found = " ".join(evidence.findings)
    return f"- **{evidence.name}** ({evidence.where}). *{evidence.says}* {found}"


def main() -> None:
    """Take over results if asked, and make the generated blocks of pages anew."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("folder", type=Path, help="where the kept results are")
    parser.add_argument("pages", type=Path, nargs="*", help="Markdown files")
    parser.add_argument(
        "--from", dest="results", type=Path, help="take over the results of this reproduction"
    )
    given = parser.parse_args()
    try:
        if given.results is not None:
            sys.stderr.write(f"taken over: {', '.join(take_over(given.results, given.folder))}\n")
        changed = update(given.pages, given.folder)
    except PresError as error:
        raise SystemExit(f"error: {error}") from None
    sys.stderr.write(f"changed: {', '.join(map(str, changed)) or 'nothing'}\n")


if __name__ == "__main__":
    main()
