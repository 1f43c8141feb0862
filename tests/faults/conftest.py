import sys
from collections.abc import Callable

import pytest


@pytest.fixture
def tell(
    request: pytest.FixtureRequest, long: bool, capfd: pytest.CaptureFixture[str]
) -> Callable[[str], None]:
    """What a long campaign says of itself, on the terminal."""

    def line(text: str) -> None:
        if long:
            with capfd.disabled():
                sys.stdout.write(f"\n{request.node.name}: {text}\n")

    return line
