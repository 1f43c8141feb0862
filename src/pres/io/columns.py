"""Which column plays which role: named by the user, or guessed from its name and said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pres.errors import ColumnError, nearest

# Names a role is known by, best first. A name of `_ACTORS` or `_THINGS` says that sources and
# destinations are two kinds of nodes; the neutral names do not.
_ACTORS = ("user", "userid", "customer", "customerid", "client", "member", "student", "reader", "account")
_THINGS = ("item", "itemid", "product", "productid", "page", "article", "movie", "song", "course", "merchant")
_KNOWN = {
    "src": ("src", "source", "sourceid", "sender", "from", "u", "head", "subject", *_ACTORS),
    "dst": ("dst", "destination", "dest", "target", "targetid", "receiver", "recipient", "to", "v", "i",
            "tail", "object", *_THINGS),
    "t": ("t", "ts", "time", "timestamp", "unixtime", "datetime", "date", "when", "createdat"),
    "label": ("label", "statelabel", "y"),
}  # fmt: skip
_FEATURE = re.compile(r"(f|x|feat|feature)_?\d+", re.IGNORECASE)


@dataclass(frozen=True)
class Columns:
    """The columns of each role."""

    src: str
    dst: str
    t: str
    x: tuple[str, ...]
    categories: tuple[str, ...]
    label: str | None
    guessed: tuple[str, ...]  # roles that were guessed, as "src='user'"
    unused: tuple[str, ...]

    @property
    def names_two_kinds(self) -> bool:
        """Whether the names say that sources and destinations are two kinds of nodes."""
        return _fold(self.src) in _ACTORS or _fold(self.dst) in _THINGS


def resolve_columns(
    available: Sequence[str],
    where: str,
    *,
    src: str | None,
    dst: str | None,
    t: str | None,
    x: Sequence[str] | None,
    categories: Sequence[str],
    label: str | None,
) -> Columns:
    """Return the columns of each role: as named, otherwise guessed from ``available``."""
    for role, name in (("src", src), ("dst", dst), ("t", t), ("label", label)):
        _check_present(available, where, role, name)
    for role, names in (("x", x or ()), ("categories", categories)):
        for name in names:
            _check_present(available, where, role, name)
    named = {src, dst, t, label, *(x or ()), *categories} - {None}
    free = [name for name in available if name not in named]
    guessed: list[str] = []

    def find(role: str, given: str | None, required: bool) -> str | None:
        if given is not None:
            return given
        found = _guess(role, free)
        if found is None:
            if required:
                raise ColumnError(
                    f"{where}: no column looks like {role}; there are {_listed(available)}. "
                    f"Name it with {role}=…"
                )
            return None
        free.remove(found)
        guessed.append(f"{role}='{found}'")
        return found

    src_found, dst_found, t_found = find("src", src, True), find("dst", dst, True), find("t", t, True)
    label_found = find("label", label, False)
    assert src_found is not None and dst_found is not None and t_found is not None
    if x is None:
        x = [name for name in free if _FEATURE.fullmatch(name)]
        if x:
            guessed.append(f"x={x[0]!r} … {x[-1]!r}" if len(x) > 1 else f"x={x[0]!r}")
    unused = tuple(name for name in free if name not in x)
    return Columns(
        src_found, dst_found, t_found, tuple(x), tuple(categories), label_found, tuple(guessed), unused
    )


def _guess(role: str, free: Sequence[str]) -> str | None:
    by_folded = {_fold(name): name for name in reversed(free)}
    return next((by_folded[known] for known in _KNOWN[role] if known in by_folded), None)


def _fold(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _check_present(available: Sequence[str], where: str, role: str, name: str | None) -> None:
    if name is not None and name not in available:
        raise ColumnError(
            f"{where}: there is no column '{name}' for {role}; there are {_listed(available)}."
            + nearest(name, available)
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")
