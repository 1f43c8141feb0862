"""Settings that are strict: an unknown or impossible one is a clear line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import pydantic

from pres.errors import OptionError, nearest

Model = TypeVar("Model", bound=pydantic.BaseModel)


def setting(default: Any, description: str, **checks: Any) -> Any:
    """Return a field: its default, what it means, in a line of help, and pydantic's checks of its value."""
    return pydantic.Field(default, description=description, **checks)


class Settings(pydantic.BaseModel):
    """Named values, checked when they are given and unchangeable afterwards."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def of(cls, options: dict[str, Any], what: str = "fit") -> Self:
        """Return the settings, or one clear line about the first that cannot be."""
        with cls.checking(options, what):
            return cls(**options)

    @classmethod
    @contextmanager
    def checking(cls, options: dict[str, Any], what: str) -> Iterator[None]:
        """Raise one clear line about the first option of ``what`` that is unknown, missing or impossible."""
        for name in options:
            if name not in cls.model_fields:
                raise OptionError(f"{what} has no option {name!r}.{nearest(name, cls.model_fields)}")
        try:
            yield
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            if first["type"] == "missing":
                raise OptionError(f"{what} lacks {first['loc'][0]!r}.") from None
            if first["type"] == "value_error":
                raise OptionError(str(first["ctx"]["error"])) from None
            raise OptionError(f"{first['loc'][0]}={first['input']!r}: {first['msg'].lower()}.") from None


def by_schema(schema: type[Model], found: dict[str, Any]) -> Model:
    """Return what was found in a file by its schema, or raise a `ValueError` about the first thing amiss."""
    try:
        return schema.model_validate_json(json.dumps(found))  # as text, tuples and dataclasses are strict too
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}") from None
