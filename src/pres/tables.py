"""How tables are shown in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table


def table(
    names: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[str] = (), **look: Any
) -> Table:
    """Return a table; only the columns named in ``left`` stand on the left."""
    made = Table(box=None, pad_edge=False, title_justify="left", **look)
    for name in names:
        made.add_column(name, justify="left" if name in left else "right", overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def listed(*rows: tuple[str, str], **look: Any) -> Table:
    """Return a table of names and values."""
    made = Table(show_header=False, box=None, title_justify="left", **look)
    made.add_column(style="dim", min_width=13)
    made.add_column()
    for row in rows:
        made.add_row(*row)
    return made
