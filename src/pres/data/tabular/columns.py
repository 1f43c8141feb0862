"""Which column plays which role: named by the user, or guessed from its name and said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pres.errors import ColumnError, OptionError, nearest

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
        return not _words(self.src).isdisjoint(_ACTORS) and not _words(self.dst).isdisjoint(_THINGS)

    @property
    def used(self) -> tuple[str, ...]:
        """Every column that has a role."""
        label = () if self.label is None else (self.label,)
        return (self.src, self.dst, self.t, *self.x, *self.categories, *label)

    def without_label(self) -> Columns:
        """Return the same columns with the label among the unused ones."""
        assert self.label is not None
        guessed = tuple(guess for guess in self.guessed if guess != f"label='{self.label}'")
        return replace(self, label=None, guessed=guessed, unused=(*self.unused, self.label))


@dataclass(frozen=True)
class PairColumns:
    """The columns of a table of pairs."""

    src: str
    dst: str
    t: str | None  # None: the pairs have no time
    guessed: tuple[str, ...] = ()  # roles that were guessed, as "src='user'"


def resolve_columns(
    available: Sequence[str],
    where: str,
    *,
    src: str | None,
    dst: str | None,
    t: str | None,
    x: str | Sequence[str] | None,
    categories: str | Sequence[str],
    label: str | None,
) -> Columns:
    """Return the columns of each role: as named, otherwise guessed from ``available``."""
    x, categories = _several("x", x), _several("categories", categories) or []
    wide = [("x", name) for name in x or ()] + [("categories", name) for name in categories]
    roles = {"src": src, "dst": dst, "t": t, "label": label}
    found, guessed, free = _resolve(available, where, roles, wide, needed=("src", "dst", "t"))
    if x is None:
        x = [name for name in free if _FEATURE.fullmatch(name)]
        if x:
            guessed.append(f"x={x[0]!r} … {x[-1]!r}" if len(x) > 1 else f"x={x[0]!r}")
    return Columns(
        src=str(found["src"]),
        dst=str(found["dst"]),
        t=str(found["t"]),
        x=tuple(x),
        categories=tuple(categories),
        label=found["label"],
        guessed=tuple(guessed),
        unused=tuple(name for name in free if name not in x),
    )


def resolve_pair_columns(
    available: Sequence[str], where: str, *, src: str | None, dst: str | None, t: str | None
) -> PairColumns:
    """Return the columns of pairs: as named, otherwise guessed from ``available``; a time may be missing."""
    roles = {"src": src, "dst": dst, "t": t}
    found, guessed, _ = _resolve(available, where, roles, [], needed=("src", "dst"))
    return PairColumns(str(found["src"]), str(found["dst"]), found["t"], tuple(guessed))


def _resolve(
    available: Sequence[str],
    where: str,
    roles: dict[str, str | None],
    further: list[tuple[str, str]],
    needed: Sequence[str],
) -> tuple[dict[str, str | None], list[str], list[str]]:
    """Return the column of each role, named or guessed; what was guessed; and the columns that are left."""
    named = [(role, name) for role, name in roles.items() if name is not None] + further
    _check_named(available, where, named)
    taken = {name for _, name in named}
    free = [name for name in available if name not in taken]
    unnamed = list(available) == unnamed_columns(len(available))
    by_place = dict(zip(roles, available, strict=False)) if unnamed and len(available) <= 3 else {}
    found, guessed = dict(roles), []
    for role in roles:
        name = by_place[role] if by_place.get(role) in free else _guess(role, free)
        if found[role] is None and name is not None:
            found[role] = name
            free.remove(name)
            guessed.append(f"{role}='{name}'")
    missing = [role for role in needed if found[role] is None]
    if missing:
        raise ColumnError(
            f"{where}: no column looks like {' or '.join(missing)}; there are {_listed(available)}. Name "
            f"{'it' if len(missing) == 1 else 'them'} ({', '.join(f'{role}=…' for role in missing)})"
            + ("." if unnamed else "; if the first line is data already, say so (header=False).")
        )
    return found, guessed, free


def unnamed_columns(count: int) -> list[str]:
    """Return what the columns of a text file without a header are called."""
    return [f"column_{place + 1}" for place in range(count)]


def _guess(role: str, free: Sequence[str]) -> str | None:
    """Return the column whose whole name is known for the role, or else one with such a word in it."""
    whole = {_fold(name): name for name in reversed(free)}
    words = {word: name for name in reversed(free) for word in _words(name) if len(word) > 1}
    for names in (whole, {} if role == "label" else words):
        for known in _KNOWN[role]:
            if known in names:
                return names[known]
    return None


def _words(name: str) -> set[str]:
    """Return the whole name and the words in it, as they are known."""
    return {_fold(name), *(_fold(word) for word in re.split(r"[^A-Za-z0-9]+", name))}


def _fold(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _several(role: str, names: Any) -> list[str] | None:
    """Return column names as a list; a single name needs no brackets."""
    if names is None or isinstance(names, str):
        return None if names is None else [names]
    try:
        return list(names)
    except TypeError:
        raise OptionError(f"{role}={names!r} must be a list of column names.") from None


def _check_named(available: Sequence[str], where: str, named: Sequence[tuple[str, str]]) -> None:
    role_of: dict[str, str] = {}
    for role, name in named:
        if name not in available:
            raise ColumnError(
                f"{where}: there is no column {name!r} for {role}; there are {_listed(available)}."
                + nearest(str(name), available)
            )
        if name in role_of:
            raise ColumnError(
                f"{where}: '{name}' is named for {role_of[name]} and for {role}; a column has one role."
            )
        role_of[name] = role


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name[:40]}'" for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def check_distinct(names: Sequence[str], where: str) -> None:
    """Raise if two columns have one name."""
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        raise ColumnError(f"{where}: more than one column is called '{twice[0]}'. Give each its own name.")
