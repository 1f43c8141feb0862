"""What a stream is like, and what a temporal batch of it would lose."""

from pres.diagnosis.diagnose import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose"]
