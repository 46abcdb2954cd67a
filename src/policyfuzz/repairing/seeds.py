"""Seeds that never meet: what trains a policy, what chooses among candidates, and what judges the result."""

from enum import IntEnum

from policyfuzz.core.errors import UsageError

#: Seeds of users are small numbers, and a comparison draws its pool with 2**64 and a small number.
_PER_PURPOSE, _PER_SEED = 2**40, 2**20


#: Added to the number of plain random draws: a campaign with the same seed would begin with the same inputs.
DRAWS = 2**19


class Purpose(IntEnum):
    """What random draws are for."""

    TRAINING = 1
    VALIDATION = 2
    VERDICT = 3


def seed_for(purpose: Purpose, seed: int, number: int = 0) -> int:
    """The seed of the draws with this `number` for one `purpose`, in a repair with this `seed`."""
    if not 0 <= seed < _PER_SEED:
        raise UsageError(f"the seed of a repair is {seed}, expected a number from 0 to {_PER_SEED - 1:,}")
    return purpose * _PER_PURPOSE + seed * _PER_SEED + number
