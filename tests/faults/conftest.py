from collections.abc import Callable

import pytest


@pytest.fixture
def tell(request: pytest.FixtureRequest, long: bool) -> Callable[[str], None]:
    """What a long campaign says of itself, on the terminal."""
    writer = request.config.get_terminal_writer()
    return lambda text: writer.line(f"\n{request.node.name}: {text}") if long else None
