"""Those who listen to a campaign, and may stop it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from policyfuzz.campaign.events import BatchDone, Event, Examined, Listener
from policyfuzz.core.errors import UsageError


class Stop(Exception):
    """Raised by a callback: the campaign ends after this batch, and all that was found is kept."""


@dataclass(slots=True)
class Audience:
    """Tells every event to all `listeners`, in their order."""

    listeners: tuple[Listener, ...]
    _wants_stop: bool = field(init=False, default=False)

    @staticmethod
    def of(listeners: Iterable[Listener] | Listener) -> "Audience":
        """An audience of `listeners`, functions or objects that can be called, or of one of them."""
        found = tuple(listeners) if isinstance(listeners, Iterable) else (listeners,)
        for listener in found:
            if not callable(listener):
                raise UsageError(
                    f"a callback is a {type(listener).__name__}, which cannot be called",
                    "expected a function of one event, or an object with __call__(event)",
                )
        return Audience(found)

    def __call__(self, event: Event) -> None:
        """Tell all of them, and end the campaign as Ctrl-C does if one of them wants that."""
        for listener in self.listeners:
            try:
                listener(event)
            except Stop:
                self._wants_stop = True
        # other events come where the campaign cannot be left: before its start, and after its end
        if self._wants_stop and isinstance(event, Examined | BatchDone):
            raise KeyboardInterrupt
