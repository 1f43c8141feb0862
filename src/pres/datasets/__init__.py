"""Public datasets by name: found, downloaded, parsed, and held against their published counts."""

from pres.datasets.catalogue import Entry, catalogue
from pres.datasets.load import load

__all__ = ["Entry", "catalogue", "load"]
