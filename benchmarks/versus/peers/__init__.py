"""Fuzzers of others, driven as their makers meant it, on our targets, and a naive baseline."""

from collections.abc import Callable, Mapping

from benchmarks.versus.trial import Contestant


def _mdpfuzz() -> Contestant:
    from benchmarks.versus.peers.mdpfuzz_package import MdpfuzzPackage

    return MdpfuzzPackage(coverage=True)


def _mdpfuzz_no_coverage() -> Contestant:
    from benchmarks.versus.peers.mdpfuzz_package import MdpfuzzPackage

    return MdpfuzzPackage(coverage=False)


def _cma_me() -> Contestant:
    from benchmarks.versus.peers.cma_me import CmaMe

    return CmaMe()


def _curiosity() -> Contestant:
    from benchmarks.versus.peers.curiosity import Curiosity

    return Curiosity()


def _half_noise() -> Contestant:
    from benchmarks.versus.peers.half_noise import HalfNoise

    return HalfNoise()


#: Name in the bench to what makes the contestant; MissingExtra where its package is not installed.
PEERS: Mapping[str, Callable[[], Contestant]] = {
    "pypi-mdpfuzz": _mdpfuzz,
    "pypi-mdpfuzz-no-coverage": _mdpfuzz_no_coverage,
    "cma-me": _cma_me,
    "curiosity": _curiosity,
    "half-noise": _half_noise,
}
