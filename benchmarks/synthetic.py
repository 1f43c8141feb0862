"""How fast the embedded stream is made."""

from rich.console import Console
from rich.table import Table

import pres
from benchmarks.timing import seconds

SIZES = (100_000, 1_000_000, 10_000_000)


def run() -> None:
    table = Table(title="Making synthetic streams: million events per second", title_justify="left")
    for name in ("events", "plain", "4 features and labels"):
        table.add_column(name, justify="right")
    for size in SIZES:
        rates = []
        for options in ({"features": 0, "labels": False}, {"features": 4, "labels": True}):
            spent = min(seconds(lambda: pres.load("synthetic", num_events=size, **options)) for _ in range(3))  # noqa: B023
            rates.append(f"{size / spent / 1e6:.1f}")
        table.add_row(f"{size:,}", *rates)
    Console().print(table)
