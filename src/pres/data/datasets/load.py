"""`pres.load`: a public dataset by name."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
import shutil
from pathlib import Path
from typing import Any

from polars.exceptions import PolarsError

from pres.data.datasets.assemble import assemble, cleaned
from pres.data.datasets.download import download as download_file
from pres.data.datasets.formats import FORMATS, write_parquet
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
    PresError,
    SourceNotFoundError,
    check_choice,
    nearest,
    notify,
)
from pres.storage import user_path

_MOST_BYTES = 8 << 30  # of a converted copy: beyond this it costs more than it saves
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
    raw = _read_converted(found, dataset) if layout.slow else None
    if raw is not None:
        return _stream(_named(raw, found), dataset, features, part)[0]
    with found.opened() as files:
        raw = layout.read(files, dataset)
        stream, whole = _stream(_named(raw, found), dataset, features, part)
        if layout.slow:
            _keep_converted(whole, found, dataset)
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


def _read_converted(found: Found, dataset: Dataset) -> RawEvents | None:
    """Return the events from an earlier conversion of exactly these files, or None."""
    folder, parquet = _converted_folder(found, dataset), FORMATS["parquet"]
    try:
        files = parquet.match({path.name for path in folder.iterdir()}, dataset, own=True)
        if files is None:
            return None
        return parquet.read({role: folder / file for role, file in files.items()}, dataset)
    except (OSError, PresError):  # absent or damaged: it is made anew
        return None


def _keep_converted(raw: RawEvents, found: Found, dataset: Dataset) -> None:
    """Write the events to the cache for the next time; say so once if that cannot be done."""
    size = sum(4 * part.numel() for part in raw.per_event().values())
    if size > _MOST_BYTES:
        return
    folder = _converted_folder(found, dataset)
    try:
        _write(raw, folder, dataset)
    except (OSError, PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        notify(
            f"'{dataset.name}' will be slow to load each time: no converted copy can be kept in "
            f"{folder.parent} ({reason}). Set PRES_CACHE to a folder with room."
        )


def _converted_folder(found: Found, dataset: Dataset) -> Path:
    """Return the folder of a copy: its name tells the source files and their state apart."""
    source, state = hashlib.sha256(), hashlib.sha256()
    for path in found.sources:
        source.update(f"{path.resolve()}\n".encode())
        facts = path.stat()
        state.update(f"{facts.st_size} {facts.st_mtime_ns}\n".encode())
    name = f"{dataset.name}-{source.hexdigest()[:12]}-{state.hexdigest()[:12]}"
    return cache_folder() / "converted" / name


def _write(raw: RawEvents, folder: Path, dataset: Dataset) -> None:
    """Write into a folder beside the final one and rename it, so that no reader sees a part of it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder.parent / f".making-{secrets.token_hex(8)}"
    try:
        beside.mkdir()
        write_parquet(raw, beside, dataset)
        outdated = folder.name.rpartition("-")[0] + "-"
        for old in folder.parent.glob(f"{outdated}*"):  # of the same files in an earlier state
            shutil.rmtree(old, ignore_errors=True)
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
