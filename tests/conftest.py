"""What every test runs under: the same on any machine, however busy it is and whatever its user has set."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# A busy machine takes any time for an example. The examples are the same each time: what passes here passes
# there. To look for new ones: pytest --hypothesis-profile=search
settings.register_profile(
    "same", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("search", settings.get_profile("same"), derandomize=False, max_examples=1_000)
settings.load_profile("same")

# What decides how wide and how coloured the command line and its tables are, here and in processes that tests
# start: as without a terminal.
for name in (
    *("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
    *("TERMINAL_WIDTH", "JUPYTER_COLUMNS", "JUPYTER_LINES", "TYPER_USE_RICH", "UNICODE_VERSION"),
    *("PYTHONWARNINGS", "PYTHONDEVMODE", "PYTHONSAFEPATH", "PYTHONIOENCODING"),
):
    os.environ.pop(name, None)
os.environ |= {"COLUMNS": "80", "LINES": "25", "TERM": "dumb", "PYTHONUTF8": "1"}

# One thread for numbers, before torch is imported: two processes with other numbers of them round otherwise.
os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--long``: campaigns at full length, where CI runs their short version."""
    parser.addoption("--long", action="store_true", help="run campaigns at full length")


@pytest.fixture(scope="session")
def long(pytestconfig: pytest.Config) -> bool:
    """Whether campaigns run at full length."""
    return bool(pytestconfig.getoption("--long"))


@pytest.fixture(autouse=True, scope="session")
def nothing_kept_from_before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide the user's datasets, and what torch compiled before, perhaps for another processor.

    Tests on real datasets look for them earlier, when they are collected.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PRES_DATA", raising=False)
        for name in ("PRES_CACHE", "TORCHINDUCTOR_CACHE_DIR"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name)))
        yield
