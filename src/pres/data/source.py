"""Events by one word: the name of a dataset, or the path of a file."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from pathlib import Path
from typing import Any

from pres.data.datasets.load import load
from pres.data.datasets.registry import DATASETS
from pres.data.reading import OPTIONS, read
from pres.data.stream import EventStream
from pres.errors import OptionError, UnknownDatasetError, nearest

_OF_A_FILE = [name for name in OPTIONS if name != "features"]


def names_a_file(source: str) -> bool:
    """Return whether a word is the path of a file, there or not, rather than the name of a dataset."""
    with suppress(OSError, ValueError):  # a name that no file can have
        return Path(source).exists() or bool(Path(source).suffix) or "/" in source
    return True


def events_from(source: str, options: dict[str, Any]) -> EventStream:
    """Return the dataset of that name if there is one, otherwise the events of the file.

    Beside the options of `pres.load` or `pres.read`, ``first`` takes only so many events.
    """
    if (first := options.get("first")) is not None:
        if first < 1:
            raise OptionError(f"first={first}: take at least one event.")
        whole = events_from(source, {name: value for name, value in options.items() if name != "first"})
        origin = whole.info.origin
        if origin is not None:
            origin = dataclasses.replace(origin, options=origin.options | {"first": first})
        return whole[:first].with_info(dataclasses.replace(whole.info, origin=origin))
    if source.casefold() in DATASETS:
        foreign = [name for name in options if name in _OF_A_FILE]
        if foreign:
            raise OptionError(
                f"'{source}' is a named dataset; {', '.join(foreign)} can be given for a file only."
            )
        return load(source, **options)
    if names_a_file(source):
        for name in options:
            if name not in (*_OF_A_FILE, "features"):
                meant = " Did you mean 't'?" if name == "time" else nearest(name, _OF_A_FILE)
                raise OptionError(f"reading a file has no option {name!r}.{meant}")
        return read(source, **options)
    raise UnknownDatasetError(
        f"there is neither a file nor a dataset '{source}'.{nearest(source, DATASETS)} "
        f"Datasets are {', '.join(DATASETS)}."
    )
