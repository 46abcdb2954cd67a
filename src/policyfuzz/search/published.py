"""Constants of the published code of MDPFuzz (Pang, Yuan and Wang, ISSTA 2022), target by target."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from policyfuzz.core.settings import SearchSettings
from policyfuzz.core.target import split_options

#: gamma: one over the constant ten of the code.
_GAMMA = 0.1


@dataclass(frozen=True, slots=True)
class PublishedConstants:
    """What the code fixes for one target."""

    components: int = 10  #: K
    children: int = 5  #: mutants of a seed before it leaves the corpus
    kept_below: float = 0.01  #: tau: density of a state sequence below which a mutant is kept
    learnt_below: float = 0.01  #: density below which a sequence is learnt; not always the same tau
    samples: int | None = None  #: N; None: as many as the target wants
    crashed_samples: bool = True  #: are parents


_DRIVING = PublishedConstants(kept_below=0.1, learnt_below=0.1, samples=50)
#: By the name of our target without its options. Others get K and tau of the paper.
PUBLISHED: Mapping[str, PublishedConstants] = {
    "acasxu": PublishedConstants(components=5, kept_below=0.1, samples=1000),
    "coopnavi": PublishedConstants(components=1, children=20, samples=3000),
    "bipedal": PublishedConstants(kept_below=0.02, learnt_below=0.1, samples=1000, crashed_samples=False),
    "driving-rl": _DRIVING,
    "driving-il": _DRIVING,
    "carla": _DRIVING,
}


def published_settings(settings: SearchSettings, target: str) -> SearchSettings:
    """`settings` with the constants of the published code for `target`, a name with or without options."""
    constants = PUBLISHED.get(split_options(target)[0], PublishedConstants())
    return replace(
        settings,
        samples=settings.samples if constants.samples is None else constants.samples,
        density=replace(settings.density, components=constants.components, forgetting=_GAMMA),
        freshness=replace(settings.freshness, threshold=math.log(constants.kept_below)),
        published=replace(
            settings.published,
            children=constants.children,
            crashed_samples=constants.crashed_samples,
            learnt_below=math.log(constants.learnt_below),
        ),
    )
