"""What a run ran on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl
import torch


def environment(device: torch.device) -> dict[str, Any]:
    """Return versions and hardware, as plain values."""
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {
        "pres": version("pres"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "polars": pl.__version__,
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": str(device),
        "gpu": gpu,
    }
