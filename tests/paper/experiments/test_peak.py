"""The peak of memory: how it is reckoned, by readings of our own, and what a real process measures."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pres.paper.experiments import peak
from pres.paper.experiments.peak import peak_memory
from tests.waiting import PATIENCE


class Kernel:
    """What Linux tells a process of its memory, in KiB, but as a test wants it."""

    def __init__(self, folder: Path) -> None:
        self.status, self.reset = folder / "status", folder / "clear_refs"
        self.reset.touch()
        self.slept = 0
        self.coming: Iterator[int] = iter(())
        self.tell(rss=1_000, highest=1_000)

    def tell(self, **kibibytes: int) -> None:
        names = {"rss": "VmRSS", "highest": "VmHWM", "peak": "VmPeak"}
        lines = [f"{names[name]}:\t{size:8} kB\n" for name, size in kibibytes.items()]
        self.status.write_text("Name:\tpython\n" + "".join(lines))

    def sleep(self, seconds: float) -> None:
        """Let the next reading come."""
        self.slept += 1
        rss = next(self.coming, None)
        if rss is not None:
            self.tell(peak=2**30, rss=rss, highest=900_000)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    found = Kernel(tmp_path)
    monkeypatch.setattr(peak, "_STATUS", found.status)
    monkeypatch.setattr(peak, "_RESET", found.reset)
    monkeypatch.setattr(peak, "time", SimpleNamespace(sleep=found.sleep))
    return found


def test_it_is_the_highest_mark_above_what_was_held_before(kernel: Kernel) -> None:
    kernel.tell(peak=2**30, rss=300_000, highest=900_000)
    with peak_memory() as found:
        assert kernel.reset.read_text() == "5"  # or an earlier mark would stand
        kernel.tell(peak=2**30, rss=350_000, highest=420_000)
        assert found() is None
    kernel.tell(peak=2**30, rss=800_000, highest=800_000)  # what comes after does not count
    assert found() == 120_000 * 1024


def test_who_only_shrinks_takes_nothing(kernel: Kernel) -> None:
    with peak_memory() as found:
        kernel.tell(rss=400, highest=900)
    assert found() == 0


def test_it_starts_when_what_was_freed_before_has_been_given_back(kernel: Kernel) -> None:
    """Memory that goes back meanwhile would make room for what is to be measured."""
    falling = [500_000, 499_900, 460_000, *[460_100] * (peak._STILL - 2), 440_000, *[439_900] * 200]
    kernel.coming = iter(falling)
    kernel.tell(peak=2**30, rss=500_000, highest=900_000)
    with peak_memory() as found:
        assert kernel.slept == falling.index(440_000) + 1 + peak._STILL
        kernel.tell(peak=2**30, rss=440_000, highest=500_000)
    assert found() == (500_000 - 439_900) * 1024


def test_it_does_not_wait_for_ever(kernel: Kernel) -> None:
    kernel.coming = iter(range(10**9, 0, -2 * peak._NOISE))
    kernel.tell(rss=2 * 10**9, highest=2 * 10**9)
    with peak_memory():
        assert kernel.slept == peak._LOOKS


@pytest.mark.parametrize("lacks", ["status", "reset", "rss", "highest"])
def test_where_the_kernel_does_not_tell_it_is_unknown(kernel: Kernel, lacks: str) -> None:
    if lacks == "status":
        kernel.status.unlink()
    elif lacks == "reset":
        kernel.reset.unlink()
        kernel.reset.mkdir()  # what cannot be written to
    else:
        kernel.tell(**{name: 1_000 for name in ("rss", "highest", "peak") if name != lacks})
    with peak_memory() as found:
        pass
    assert found() is None


MEASURE = """
import json
import torch
from pres.paper.experiments.peak import peak_memory

def peak_of(make):
    with peak_memory() as peak:
        held = make()
        del held
    return peak()

def small_blocks():  # which malloc keeps when they are freed: 64 KiB each, 128 MiB in all
    return [torch.ones(2**14) for _ in range(2**11)]

found = {"256": peak_of(lambda: torch.ones(2**26)), "128": peak_of(lambda: torch.ones(2**25))}
small, above_them = small_blocks(), torch.ones(2**12)
del small
found["128 again"] = peak_of(small_blocks)
print(json.dumps(found))
"""


def told_by_the_kernel() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return "VmHWM" in Path("/proc/self/status").read_text()


@pytest.mark.skipif(not told_by_the_kernel(), reason="the kernel tells no peak")
def test_the_peak_of_a_process_is_what_it_held_at_most() -> None:
    """In a process of its own, which nobody else uses, and of far more than it holds otherwise."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    for name, found in json.loads(done.stdout).items():
        held = int(name.split()[0])
        assert held - 48 < found / 2**20 < held + 48, name
