"""How the commands speak: tables and JSON to stdout, everything else to stderr."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console

from pres.errors import Notice

stdout, stderr = Console(), Console(stderr=True)


@contextmanager
def notices() -> Iterator[None]:
    """Show what the library decided for the user as notes on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Notice)
        yield
    for warning in caught:
        stderr.print(f"[dim]note: {plain(str(warning.message))}[/]", highlight=False, soft_wrap=True)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object to stdout."""
    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def plain(text: str) -> str:
    """Return ``text`` with nothing in it read as rich markup."""
    return text.replace("[", r"\[")


@contextmanager
def stoppable(line: str) -> Iterator[None]:
    """Let Ctrl-C end the command with one line."""
    try:
        yield
    except KeyboardInterrupt:
        say(line)
        raise typer.Exit(130) from None


def say_probe(size: int) -> None:
    """Say which batch size is about to be probed."""
    say(f"probing batches of {size:,} events …")


def say(text: str) -> None:
    """Print one line to stderr, as it is."""
    stderr.print(plain(text), highlight=False, soft_wrap=True)
