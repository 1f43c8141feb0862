"""The states in a run's folder: the last and the best one, and of each the one before."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from pathlib import Path

from pres.errors import Notice, SourceNotFoundError, UnreadableSourceError
from pres.storage import keep_previous, previous_of, storage_errors, sync
from pres.training.checkpoint import Tensors, TrainingState, load_tensors, save_tensors

BEST, LAST = "best.safetensors", "last.safetensors"


@dataclass
class KeptStates:
    """Writes states so that, killed anywhere, a whole one is left with the best state of its own history.

    A state names its best one by checksum. The best is written first and the state then, and either keeps
    the one that it replaces.
    """

    folder: Path
    best: str | None = None  # the checksum of the best state of the history so far
    kept: tuple[int, int] = (1, 0)  # the epoch and the batch that the last state stands before

    def keep_best(self, state: Tensors, epoch: int) -> None:
        """Write the best state so far, which the next state names."""
        keep_previous(self.folder / BEST)
        self.best = save_tensors(self.folder / BEST, state, {"epoch": epoch})

    def keep_last(self, state: TrainingState) -> None:
        """Write the state to go on from."""
        keep_previous(self.folder / LAST)
        dataclasses.replace(state, best=self.best).save(self.folder / LAST)
        self.kept = state.epoch, state.batch

    def newest(self) -> tuple[TrainingState, Tensors]:
        """Return the newest state that is whole and its best one, empty if there was no validation.

        From now on both are where the newest are. A note says so if they were not.
        """
        last, best, reasons = self.folder / LAST, self.folder / BEST, []
        for path in (last, previous_of(last)):
            try:
                state = TrainingState.load(path)
                where, found = self._best_of(state)
            except (SourceNotFoundError, UnreadableSourceError) as error:
                reasons.append(str(error))
                continue
            if path != last:
                at = f"epoch {state.epoch}, batch {state.batch + 1}"
                said = f"{reasons[0]} The run goes on from the state before it, at {at}."
                warnings.warn(said, Notice, stacklevel=2)
            with storage_errors(self.folder):
                if where != best:
                    where.replace(best)
                if path != last:
                    path.replace(last)
                sync(self.folder)
            self.best, self.kept = state.best, (state.epoch, state.batch)
            return state, found
        raise UnreadableSourceError(f"{reasons[0]} The state before it is of no use either: train anew.")

    def _best_of(self, state: TrainingState) -> tuple[Path, Tensors]:
        """Return the best state of a state's history, and where it is."""
        best, reason = self.folder / BEST, ""
        if state.best is None:
            return best, {}
        for path in (best, previous_of(best)):
            try:
                tensors, _, checksum = load_tensors(path)
            except (SourceNotFoundError, UnreadableSourceError) as error:
                reason = reason or str(error)
                continue
            if checksum == state.best:
                return path, tensors
        raise UnreadableSourceError(reason or f"{best} is not of the state beside it.")
