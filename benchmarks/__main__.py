"""Run the benchmarks: ``python -m benchmarks``, or some by name: ``python -m benchmarks sampling scale``."""

import os
import sys

import torch

from benchmarks import (
    batches,
    cost,
    evaluating,
    growing,
    loading,
    online,
    peers,
    sampling,
    scale,
    scaling,
    scan,
    smoothing,
    synthetic,
)

BENCHMARKS = {
    "sampling": sampling.run,
    "scaling": scaling.run,
    "synthetic": synthetic.run,
    "loading": loading.run,
    "smoothing": smoothing.run,
    "peers": peers.run,
    "evaluating": evaluating.run,
    "batches": batches.run,
    "scan": scan.run,
    "scale": scale.run,
    "cost": cost.run,
    "growing": growing.run,
    "online": online.run,
}


def main() -> None:
    names = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {os.cpu_count()} cores")
    for name in names:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
