"""What the files of a run hold, checked when they are read: names, types, and that nothing is missing."""

from __future__ import annotations

import typing
from pathlib import Path
from typing import Any

import pydantic

from pres.errors import UnreadableSourceError
from pres.settings import by_schema
from pres.training.checkpoint import EpochResult
from pres.training.config import FitConfig
from pres.training.run import Run

_STRICT = pydantic.ConfigDict(strict=True)


class _Origin(pydantic.BaseModel):
    model_config = _STRICT
    source: str | None
    options: dict[str, Any]


class Events(pydantic.BaseModel):
    """The file ``events.json``."""

    model_config = _STRICT
    count: int
    nodes: int
    fingerprint: str
    origin: _Origin | None


def _of(name: str, fields: dict[str, Any]) -> type[pydantic.BaseModel]:
    """Return what an object is checked against: each of the fields is there, and of its type."""
    given: dict[str, Any] = {field: (kind, ...) for field, kind in fields.items()}
    return pydantic.create_model(name, __config__=_STRICT, **given)


_fit: dict[str, Any] = {name: field.annotation for name, field in FitConfig.model_fields.items()}
# The smoothing may be one that only its user knows, so that its own options are checked when it is made.
_fit["smoothing"] = dict[str, Any] | None
_source = {"source": str | None, "reading": dict[str, Any]}
_model = {"model": str, "model_options": dict[str, Any] | None}
Config = _of("Config", _source | _model | _fit)

_run = {name: kind for name, kind in typing.get_type_hints(Run).items() if name not in ("state", "last")}
_run["history"] = typing.Annotated[list[EpochResult], pydantic.Field(min_length=1)]
Result = _of("Result", _run | {"config": _of("FitOptions", _fit), "events": Events})


def check(found: dict[str, Any], schema: type[pydantic.BaseModel], path: Path) -> Any:
    """Return what was found in a file by its schema, or raise the first thing that is missing or mistyped."""
    try:
        return by_schema(schema, found)
    except ValueError as error:
        raise UnreadableSourceError(f"{path} is damaged: {error}.") from None
