"""A trainer that uses no thread but its own and those of torch."""

from __future__ import annotations

from typing import Any

from pres.training.prefetch import Prefetch
from pres.training.trainer import Trainer


class InTurn(Prefetch[Any, Any]):
    """Makes everything when its turn comes."""

    @property
    def pays(self) -> bool:
        """Never."""
        return False


def in_turn(trainer: Trainer) -> Trainer:
    """Return the trainer, which from now on prepares every batch when its turn comes.

    Where torch leaves a core idle it would prepare the next one there: a core more than others have in
    a comparison, and work that a count of this thread does not see.
    """
    trainer.ahead = InTurn(trainer.prepare)
    return trainer
