"""The flag that names a model: any that the registry has."""

from __future__ import annotations

from typing import Annotated

import typer

HELP = "Which model, such as tgn, jodie or apan."


def known(name: str | None) -> str | None:
    """Return the name of a model, if there is one of that name."""
    from pres.models.registry import MODELS

    if name is not None and name not in MODELS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, MODELS))}.")
    return name


ModelName = Annotated[str, typer.Option(help=HELP, callback=known)]
AnyModel = Annotated[str | None, typer.Option(help=f"{HELP}  \\[default: tgn]", callback=known)]
