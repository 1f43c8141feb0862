"""What a stream asks of training: its diagnosis, and how large its temporal batches may be."""

from pres.tuning.diagnose import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose"]
