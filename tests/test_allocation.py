"""Blocks that are freed and asked for again, counted by the pages that the system has to fill."""

import platform
import subprocess
import sys

import pytest

COUNT = """
import resource, sys, torch
torch.set_num_threads(1)
if sys.argv[1] == "kept":
    from pres.allocation import keep_large_blocks
    keep_large_blocks()
def batch():
    return [torch.ones(2_000_000) for _ in range(3)]
for _ in range(3):
    batch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    batch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives blocks back like that")
def test_large_blocks_are_kept_for_the_next_batch() -> None:
    def faults(way: str) -> int:
        done = subprocess.run([sys.executable, "-c", COUNT, way], capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert faults("kept") < faults("given back") / 10
