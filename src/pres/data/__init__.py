"""Event streams: read from any table, loaded by name, kept in files, made up."""

from pres.data.datasets.catalogue import Entry, catalogue
from pres.data.datasets.load import load
from pres.data.growing import GrowingStream
from pres.data.reading import read
from pres.data.stream import EventStream

__all__ = ["Entry", "EventStream", "GrowingStream", "catalogue", "load", "read"]
