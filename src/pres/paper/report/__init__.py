"""One self-contained HTML file of everything that a folder of results holds."""

from pres.paper.report.write import write_report

__all__ = ["write_report"]
