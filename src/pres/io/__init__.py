"""From anything tabular to an `EventStream`."""

from pres.io.read import read

__all__ = ["read"]
