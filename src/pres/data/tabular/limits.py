"""What a file may ask of the machine: files that would fill its memory, or never end, are refused before."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

from pres.errors import UnreadableSourceError

MOST_COLUMNS = 10_000
_LONGEST_LINE = 1 << 24  # bytes of the first line
_MOST_RATIO, _FREELY = 400, 1 << 26  # of unpacked bytes to packed ones; so many may come in any ratio
_PER_CELL = {True: 48, False: 16}  # bytes while a table is read: text is kept beside what it means
_ZST_BLOCK = 1 << 17  # the most that a block of a .zst file unpacks to


def check_columns(count: int, where: str) -> None:
    """Raise if there are more columns than a table of events has."""
    if count > MOST_COLUMNS:
        raise UnreadableSourceError(
            f"{where} has {count:,} columns, and at most {MOST_COLUMNS:,} are read. Give features as "
            "one array (features=…), or write fewer columns."
        )


def check_packed(path: Path) -> None:
    """Raise if a compressed text file unpacks to far more than a table does, or to a line without an end."""
    with path.open("rb") as file:
        magic = file.read(4)
        file.seek(0)
        if magic[:2] == b"\x1f\x8b":
            unpacker, unpacked, lines = zlib.decompressobj(31), 0, 0
            while unpacked < 2 * _FREELY and (some := file.read(1 << 16)):
                try:
                    out = unpacker.decompress(some)
                except zlib.error:  # the reader of the file says what is wrong
                    return
                unpacked, lines = unpacked + len(out), lines + out.count(b"\n") + out.count(b"\r")
                if unpacked > _LONGEST_LINE and not lines:
                    raise _too_long(path)
            ratio = unpacked / max(1, file.tell())
        elif magic == b"\x28\xb5\x2f\xfd":
            blocks = _zst_blocks(path)
            unpacked, ratio = blocks * _ZST_BLOCK, blocks * _ZST_BLOCK / path.stat().st_size
        else:
            first = file.read(_LONGEST_LINE)
            if len(first) == _LONGEST_LINE and not (b"\n" in first or b"\r" in first):
                raise _too_long(path)
            return
    if unpacked > _FREELY and ratio > _MOST_RATIO:
        raise UnreadableSourceError(
            f"{path} unpacks to more than {_MOST_RATIO} times its size, as no table of events does. If it is "
            "one, unpack it first."
        )


def _too_long(path: Path) -> UnreadableSourceError:
    return UnreadableSourceError(
        f"{path} has no line break in its first {_LONGEST_LINE >> 20} MiB. Write one event per line."
    )


def _zst_blocks(path: Path) -> int:
    """Return how many blocks the first frame of a .zst file has, from their headers alone."""
    with path.open("rb") as file:
        described = file.read(5)[-1:]
        if not described:
            return 0
        flags = described[0]
        single = bool(flags & 32)  # no size of a window follows
        size_of_content = (int(single), 2, 4, 8)[flags >> 6]
        file.seek(5 + (not single) + (0, 1, 2, 4)[flags & 3] + size_of_content)
        blocks = 0
        while len(header := file.read(3)) == 3:
            told = int.from_bytes(header, "little")
            blocks += 1
            file.seek(
                1 if told >> 1 & 3 == 1 else told >> 3, os.SEEK_CUR
            )  # one byte is repeated, or all are there
            if told & 1:
                break
    return blocks


def check_fits(where: str, rows: int, columns: int, is_text: bool) -> None:
    """Raise if so many cells at once would not fit the memory of this machine."""
    needed, there = rows * columns * _PER_CELL[is_text], memory()
    if needed > there:
        raise UnreadableSourceError(
            f"{where} has {rows:,} rows of {columns:,} columns: read at once, they take "
            f"{needed / 2**30:,.0f} GiB of memory, and there are {there / 2**30:,.0f}. `pres store` reads it "
            "in parts."
        )


def memory() -> int:
    """Return how many bytes of memory this process may use."""
    there = 1 << 62
    if hasattr(os, "sysconf"):
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        import resource

        allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
        there = there if allowed == resource.RLIM_INFINITY else min(there, allowed)
    return there
