"""`pres.load`: a public dataset by name."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from pres.data.datasets.assemble import assemble, cleaned
from pres.data.datasets.converted import keep_converted, read_converted
from pres.data.datasets.download import download as download_file
from pres.data.datasets.formats import FORMATS
from pres.data.datasets.locate import Found, cache_folder, data_folder, locate, search
from pres.data.datasets.raw import RawEvents
from pres.data.datasets.registry import Counts, Dataset, find_dataset
from pres.data.info import Origin
from pres.data.stream import EventStream
from pres.data.synthetic import synthetic_stream
from pres.errors import (
    DatasetUnavailableError,
    DownloadError,
    OptionError,
    SourceNotFoundError,
    check_choice,
    nearest,
)
from pres.storage import user_path

_OPTIONS = ("folder", "features", "part", "download")


def load(name: str, **options: Any) -> EventStream:
    """Return a named dataset, held against its published counts.

    It is looked for in the folder PRES_DATA names, then in the cache, then downloaded into the cache
    (PRES_CACHE, or the user's cache folder). How a copy differs from the published dataset, for instance
    by missing features, is its variant: ``events.info.variant``, shown with the stream and every result.

    Args:
        name: One of the names that ``pres datasets`` lists.
        **options: For ``"synthetic"``, those of `synthetic_stream`. For every other dataset:
            ``folder`` to look only there; ``features=False`` to leave features out;
            ``part="1% sample"`` for a published sample (gdelt); ``download=False`` never to download.
    """
    dataset = find_dataset(name)
    if dataset.embedded:
        return _from(dataset.name, options, synthetic_stream(**options))
    for option in options:
        if option not in _OPTIONS:
            raise OptionError(
                f"load({dataset.name!r}) has no option {option!r}.{nearest(option, _OPTIONS)} "
                f"There are {', '.join(_OPTIONS)}."
            )
    return _from(dataset.name, options, _load(dataset, **options))


def _from(name: str, options: dict[str, Any], stream: EventStream) -> EventStream:
    """Return the stream with its origin noted."""
    plain = {key: str(value) if isinstance(value, Path) else value for key, value in options.items()}
    info = dataclasses.replace(stream.info, origin=Origin(name, plain))
    return stream.with_info(info)


def _load(
    dataset: Dataset,
    folder: str | Path | None = None,
    features: bool = True,
    part: str | None = None,
    download: bool = True,
) -> EventStream:
    if part is not None:
        check_choice("part", part, dataset.parts)
    found = _find(dataset, folder, download)
    layout = FORMATS[found.format]
    raw = read_converted(found, dataset) if layout.slow else None
    if raw is not None:
        return _stream(_named(raw, found), dataset, features, part)[0]
    with found.opened() as files:
        raw = layout.read(files, dataset)
        stream, whole = _stream(_named(raw, found), dataset, features, part)
        if layout.slow:
            keep_converted(whole, found, dataset)
    return stream


def _named(raw: RawEvents, found: Found) -> RawEvents:
    """Return the events under the place the user knows, even if they were unpacked or converted."""
    return dataclasses.replace(raw, where=str(found.where))


def _stream(
    raw: RawEvents, dataset: Dataset, features: bool, part: str | None
) -> tuple[EventStream, RawEvents]:
    """Return the stream as it was asked for, and all that was read."""
    variants: list[str] = []
    counts, holds = _counts(dataset, len(raw))
    whole = raw = cleaned(raw, counts)
    if part is not None and holds is None:
        counts, holds = dataset.parts[part], part
        raw = raw.take(slice(None, None, round(len(raw) / counts.events)))
    if holds is not None:
        variants.append(holds)
    return assemble(raw, dataset, counts, variants, features), whole


def _counts(dataset: Dataset, events: int) -> tuple[Counts, str | None]:
    """Return the published counts that so many events are to be held against, and the part they are."""
    for part, counts in dataset.parts.items():
        if events == counts.events:
            return counts, part
    assert dataset.counts is not None
    return dataset.counts, None


def _find(dataset: Dataset, folder: str | Path | None, download: bool) -> Found:
    if folder is not None:
        place = user_path(folder)
        if not place.is_dir():
            raise SourceNotFoundError(f"{place} is not a folder.")
        found = search(place, dataset, own=True)
        if found is None:
            raise DatasetUnavailableError(
                f"{place} holds no copy of '{dataset.name}' in a known layout ({', '.join(dataset.formats)})."
            )
        return found
    found = locate(dataset)
    if found is None and download:
        _download(dataset)
        found = locate(dataset)
    if found is None:
        looked = " nor in ".join(str(root) for root in (data_folder(), cache_folder()) if root is not None)
        urls = ", ".join(source.url for source in dataset.downloads)
        raise DatasetUnavailableError(
            f"'{dataset.name}' is not in {looked}. Get it from {urls} and name its folder in PRES_DATA."
        )
    return found


def _download(dataset: Dataset) -> None:
    for source in dataset.downloads:
        try:
            download_file(source.url, cache_folder() / dataset.name / source.file, sha256=source.sha256)
        except DownloadError as error:
            raise DownloadError(
                f"'{dataset.name}' is not on this machine, and {error} Or get it by other means and name its "
                f"folder in PRES_DATA. {dataset.by_hand}".rstrip()
            ) from None
