"""What the environment's own reset draws, and how far an input lies outside of it."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

#: Share of a range by which a value may exceed what was seen.
_SLACK = 0.01
#: A number beyond it is none of an environment, and the width of such a range would overflow.
_LARGEST = 1e300


@dataclass(frozen=True, slots=True)
class OwnRange:
    """The values of one dimension that the own reset was seen to draw; one value if it never varies."""

    low: float
    high: float
    unit: str = ""
    #: Width of the bounds of the dimension: what an excess is measured by where the own reset never varies.
    reach: float = 0.0

    @property
    def is_constant(self) -> bool:
        """True where every reset draws the same value."""
        return self.low == self.high

    @property
    def text(self) -> str:
        """The range for a reader, in round numbers: resets were seen to draw nearly all of it."""
        if self.is_constant:
            return f"{self.low:.6g}"
        width = self.high - self.low
        return f"{tidy(self.low, width / 2):.6g} to {tidy(self.high, width / 2):.6g}"

    def excess(self, value: float) -> float:
        """How far `value` lies above the range, or below it as a negative number; 0 inside.

        Resets have not shown the whole range, so a hundredth of it more counts as inside.
        """
        beyond = max(0.0, value - self.high) + min(0.0, value - self.low)
        return beyond if abs(beyond) > _SLACK * (self.high - self.low) else 0.0


@dataclass(frozen=True, slots=True)
class OwnReset:
    """What the environment's own reset draws, by the name of the dimension; unknown ones are left out."""

    ranges: Mapping[str, OwnRange] = field(default_factory=dict)
    #: Dimensions that are no input, because the user or the bounds fix them, and their values.
    fixed: Mapping[str, float] = field(default_factory=dict)
    resets: int = 0  #: that were run to see this; 0 where it is known without

    def excesses(self, values: Mapping[str, float]) -> dict[str, float]:
        """Name to how far each of `values`, and of the fixed ones, lies outside; the farthest first.

        Those inside and those that are not known are left out. Dimensions compare by the reach of their
        bounds.
        """
        found = {
            name: self.ranges[name].excess(value)
            for name, value in {**self.fixed, **values}.items()
            if name in self.ranges
        }
        outside = {name: by for name, by in found.items() if by}
        return dict(sorted(outside.items(), key=lambda item: -self._share(*item)))

    def knows_all(self, names: list[str]) -> bool:
        """True where the range of every one of `names` is known."""
        return all(name in self.ranges for name in names)

    def _share(self, name: str, by: float) -> float:
        return abs(by) / (self.ranges[name].reach or 1.0)

    def to_json(self) -> str:
        """The same as text, for a campaign file."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "OwnReset | None":
        """What `to_json` wrote; None where `text` is something else, which a stranger may have written."""
        try:
            values: dict[str, Any] = json.loads(text)
            ranges = {str(name): _range_of(**one) for name, one in values["ranges"].items()}
            fixed = {str(name): _finite(value) for name, value in values["fixed"].items()}
            return cls(ranges, fixed, int(values["resets"]))
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError):
            return None


def _range_of(low: Any, high: Any, unit: Any, reach: Any) -> OwnRange:
    if not isinstance(unit, str) or _finite(low) > _finite(high):
        raise ValueError
    return OwnRange(_finite(low), _finite(high), unit, abs(_finite(reach)))


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise ValueError
    return float(value)


def tidy(value: float, width: float) -> float:
    """`value`, rounded to a tenth of `width` or less."""
    finest = 0.12 * width
    power = 10.0 ** math.floor(math.log10(finest))
    step = max(part * power for part in (1, 5) if part * power <= finest)
    return float(f"{round(value / step) * step:.12g}")


def crash_counts(text: str | None) -> Iterator[int]:
    """Crashes and episodes from the own reset, as a campaign file holds them; nothing where it does not."""
    try:
        values = json.loads(text or "")
        yield from (int(values["crashes"]), int(values["episodes"]))
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError):
        return
