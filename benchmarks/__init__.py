"""Speed and scaling, as ratios in one run. ``python -m benchmarks`` runs all, or those named."""
