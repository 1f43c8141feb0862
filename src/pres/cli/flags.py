"""Flags generated from the fields of settings: a name, a type, a default and a line of help, written once."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from pres.settings import Settings

_LATE: dict[str, Callable[[], Callable[..., None]]] = {}  # commands with generated flags, by name


def generated(
    name: str, settings: Callable[[], type[Settings]], first: Sequence[str]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command a flag for every field of settings that has a description.

    The command gets those that were given as ``flags``. Fields that it declares itself are left to it. The
    flags are made when the command is called (see `Commands`): settings are slow to import.

    Args:
        name: The command's name.
        settings: What imports and returns the settings.
        first: Fields whose flags stand before all others; the rest stand under "Advanced".
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        _LATE[name] = lambda: _with_flags(command, settings(), first)
        return _with_parameters(command, [], [])

    return decorate


class Commands(TyperGroup):
    """The commands by name; the one that is called gets its generated flags."""

    def resolve_command(self, ctx: Any, args: Any) -> Any:
        """Return the name, the command, and what follows it."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, complete(command), rest


def complete(command: Any) -> Any:
    """Return a command with its generated flags, if it has any."""
    if command is None or command.name not in _LATE:
        return command
    whole = typer.Typer(add_completion=False, rich_markup_mode="rich")
    whole.command(command.name, epilog=command.epilog)(_LATE[command.name]())
    return typer.main.get_command(whole)


def _with_flags(
    command: Callable[..., None], settings: type[Settings], first: Sequence[str]
) -> Callable[..., None]:
    declared = inspect.signature(command).parameters
    flags = {}
    for name, field in settings.model_fields.items():
        kind = _plain_type(field.annotation)
        if name in declared or field.description is None or kind is None:
            continue
        default = "" if field.default is None else f"  \\[default: {field.default}]"
        option = typer.Option(
            help=_as_flags(field.description, settings.model_fields) + default,
            rich_help_panel=None if name in first else "Advanced",
        )
        annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
        flags[name] = inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
        )
    return _with_parameters(command, [flags.pop(name) for name in first], list(flags.values()))


def _with_parameters(
    command: Callable[..., None], before: list[inspect.Parameter], after: list[inspect.Parameter]
) -> Callable[..., None]:
    """Return the command with these flags before and after its own, in place of ``flags``."""
    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "flags"]

    @functools.wraps(command)
    def called(**given: Any) -> None:
        found = {flag.name: given.pop(flag.name) for flag in (*before, *after)}
        command(**given, flags={name: value for name, value in found.items() if value is not None})

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*before, *own, *after)]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in parameters}
    return called


def _plain_type(annotation: Any) -> Any:
    """Return the type of a flag for a field, without None; None if no flag can say its values."""
    if get_origin(annotation) in (Union, types.UnionType):
        (annotation, *more) = [one for one in get_args(annotation) if one is not type(None)]
        if more:
            return None
    return annotation if annotation in (int, float, str, bool) or get_origin(annotation) is Literal else None


def _as_flags(text: str, names: Collection[str]) -> str:
    """Return a description with the names of fields in it spelled as flags."""
    return re.sub(
        r"\b[a-z]+(_[a-z]+)+\b",
        lambda found: f"--{found[0].replace('_', '-')}" if found[0] in names else found[0],
        text,
    )
