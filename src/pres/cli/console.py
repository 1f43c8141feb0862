"""How the commands speak: tables and JSON to stdout, everything else to stderr."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from pres.errors import Notice

stdout, stderr = Console(emoji=False), Console(stderr=True, emoji=False)
_flags: dict[str, tuple[list[str], list[str]]] = {}  # of the command, by the name of its argument in Python


def speak_as(command: Any) -> None:
    """From now on errors and notes spell options as the command's flags."""
    _flags.clear()
    _flags.update(
        (option.name, (option.opts, option.secondary_opts))
        for option in command.params
        if option.param_type_name == "option"
    )


def in_the_terminal(text: str) -> str:
    """Return ``text`` with options as the terminal spells them: ``header=False`` is ``--no-header``."""
    if "new" in _flags:
        text = text.replace("unknown='new'", "--new")
    names = "|".join(map(re.escape, _flags))
    return re.sub(rf"(?<![\w.-])({names})=('[^']*'|[\w.,-]*\w|…)?", _spelled, text) if names else text


def _spelled(found: re.Match[str]) -> str:
    (*_, flag), negated = _flags[found[1]]
    if found[2] in ("True", "False"):
        return negated[0] if found[2] == "False" and negated else flag
    return f"{flag} {found[2].strip(chr(39))}" if found[2] else flag


def show_error(where: str, text: str) -> None:
    """Print one line about what went wrong to stderr."""
    line = f"[bold red]{where}:[/] {plain(in_the_terminal(text))}"
    stderr.print(line, highlight=False, soft_wrap=True)


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show what the library decided for the user as a note; any other warning as Python does."""
    if not issubclass(category, Notice):
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))
        return
    text = plain(in_the_terminal(str(message)))
    stderr.print(f"[dim]note: {text}[/]", highlight=False, soft_wrap=True)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal; the body calls what this gives with the number done and that to do."""
    with Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, to_do: bars.update(task, completed=done, total=to_do)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object to stdout."""
    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def plain(text: str) -> str:
    """Return ``text`` with nothing in it read as rich markup."""
    return escape(text)


@contextmanager
def stoppable(line: str) -> Iterator[None]:
    """Let Ctrl-C end the command with one line."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(line) from None


def say_probe(size: int) -> None:
    """Say which batch size is about to be probed."""
    say(f"probing batches of {size:,} events …")


def say(text: str) -> None:
    """Print one line to stderr, as it is."""
    stderr.print(plain(text), highlight=False, soft_wrap=True)
