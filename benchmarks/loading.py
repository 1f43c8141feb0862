"""How long named datasets take to load, the first time and after."""

from rich.console import Console
from rich.table import Table

import pres
from benchmarks.timing import seconds


def run() -> None:
    table = Table(title="Loading: seconds", title_justify="left")
    for name in ("dataset", "first", "again (median of 5)"):
        table.add_column(name, justify="left" if name == "dataset" else "right")
    for entry in pres.data.catalogue():
        if entry.status != "found":
            continue
        times = [seconds(lambda: pres.load(entry.name)) for _ in range(6)]  # noqa: B023
        table.add_row(entry.name, f"{times[0]:.2f}", f"{sorted(times[1:])[2]:.2f}")
    Console().print(table)
