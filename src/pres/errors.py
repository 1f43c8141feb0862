"""One exception per failure a user can cause. Each message says what, where, and what to do."""

import difflib
import sys
import warnings
from collections.abc import Iterable

_LONGEST = 2_000  # characters of a message


class PresError(Exception):
    """Any failure that the user can mend; the command line prints it as one line."""

    def __init__(self, message: str) -> None:
        # A quoted name or value may hold line breaks, codes for the terminal, or a book.
        line = " ".join(message.splitlines())
        line = line if line.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)
        super().__init__(line if len(line) <= _LONGEST else f"{line[: _LONGEST // 2]} … {line[-200:]}")


class Notice(UserWarning):
    """Something the library decided for the user (a guessed column, a sort) and wants to be heard."""


def notify(message: str) -> None:
    """Warn of a decision, at the line outside the library that led to it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "pres":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, Notice, stacklevel=level)


class SourceNotFoundError(PresError):
    """The file to read does not exist."""


class EmptySourceError(PresError):
    """The source holds no event."""


class UnreadableSourceError(PresError):
    """The file is cut short, corrupt, or not what its name says."""


class ColumnError(PresError):
    """A column that was asked for, or could not be guessed, is not in the table."""


class ValueInRowError(PresError):
    """One value of a column cannot be used; the message names row, column and value."""


class RowCountError(PresError):
    """Two tables that belong together have different numbers of rows."""


class DegenerateStreamError(PresError):
    """The events cannot be ordered or split in time: a single event, or all at one time."""


class LabelError(PresError):
    """The stream has no labels, or a part of it has labels of one class only."""


class UnknownIdError(PresError):
    """An id that the stream never saw was asked for."""


class OptionError(PresError):
    """An argument has a value that makes no sense."""


class UnknownDatasetError(PresError):
    """No dataset has this name."""


class UnknownExperimentError(PresError):
    """No table or figure has this name."""


class JobsFailedError(PresError):
    """Some jobs of an experiment have no result; the others are kept and shown."""


class DatasetUnavailableError(PresError):
    """The dataset is known, but is neither on this machine nor to be downloaded."""


class DatasetCountError(PresError):
    """The loaded data do not have the published counts."""


class DownloadError(PresError):
    """The download did not finish; what arrived is kept, and the next attempt goes on from there."""


class ChecksumError(PresError):
    """A downloaded file is not the one that was published, or pinned at the first download."""


class StorageError(PresError):
    """A file cannot be written: no space, no permission, or no such folder."""


class NoNegativeError(PresError):
    """A source met every destination of the pool within one batch, so no negative is left for it."""


class DivergedError(PresError):
    """Training reached a loss that is not a number; the state before it is kept."""


class IndexOverflowError(PresError):
    """Nodes times events exceed what a 64-bit key can hold."""


def one_line(error: BaseException) -> str:
    """Return the first line of what an error says, without its full stop."""
    text = str(error).strip()
    return text.splitlines()[0].rstrip(".")[:200] if text else type(error).__name__


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the known name closest to ``name``, or nothing."""
    folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    return f" Did you mean '{folded[close[0]]}'?" if close else ""


def check_choice(option: str, value: str, choices: Iterable[str]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    choices = list(choices)
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise OptionError(f"{option}={value!r} is not one of {listed}.{nearest(str(value), choices)}")
