"""Points of many dimensions in the plane: by t-SNE, UMAP, or principal directions."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from policyfuzz.analysis.separation import standardised
from policyfuzz.core import extras
from policyfuzz.core.errors import MissingExtra, unknown_name

#: Principal directions that t-SNE and UMAP are given: more only cost time.
_DIRECTIONS = 50
_PERPLEXITY, _NEIGHBOURS = 30.0, 15
#: Fewer points than this have no neighbourhoods to keep.
_FEWEST = 5
#: Method to the module that it needs, and the extra that installs it.
_PACKAGES = {"tsne": ("sklearn.manifold", "analysis"), "umap": ("umap", "umap")}


def check_method(method: str) -> None:
    """Raise if there is no such `method`, or if the package that it needs is missing."""
    if method not in _METHODS:
        raise unknown_name("method", method, _METHODS)
    if method in _PACKAGES:
        _load(*_PACKAGES[method])


def project(
    points: NDArray[np.float64], method: str, seed: int
) -> tuple[NDArray[np.float64], tuple[float, ...]]:
    """(n, 2) places of `points` (n, k); for pca also the share of the variance along both axes.

    t-SNE and UMAP keep neighbours together. What they say of distances and of sizes means nothing.
    """
    check_method(method)
    reduced, shares = _principal(standardised(points), _DIRECTIONS)
    if method == "pca" or len(points) < _FEWEST:
        return _two(reduced), (*shares[:2].tolist(), 0.0, 0.0)[:2]
    # sums of several threads round differently each time
    with threadpool_limits(1):
        return np.asarray(_METHODS[method](reduced, seed), np.float64), ()


def _principal(points: NDArray[np.float64], count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n, q) places along the first `count` principal directions, and (q,) shares of the variance."""
    left, sizes, right = np.linalg.svd(points, full_matrices=False)
    largest = np.abs(right).argmax(axis=1)
    signs = np.where(right[np.arange(len(right)), largest] < 0, -1.0, 1.0)  # the sign is arbitrary
    total = max(float((sizes**2).sum()), np.finfo(np.float64).tiny)
    return (left * sizes * signs)[:, :count], sizes[:count] ** 2 / total


def _two(places: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.pad(places, ((0, 0), (0, 2)))[:, :2]


def _tsne(points: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    manifold = _load(*_PACKAGES["tsne"])
    perplexity = min(_PERPLEXITY, (len(points) - 1) / 3)
    # the usual start needs two directions
    start = "pca" if points.shape[1] >= 2 else "random"
    found = manifold.TSNE(2, perplexity=perplexity, init=start, random_state=seed, n_jobs=1)
    return np.asarray(found.fit_transform(points))


def _umap(points: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    umap = _load(*_PACKAGES["umap"])
    neighbours = min(_NEIGHBOURS, len(points) - 1)
    return np.asarray(umap.UMAP(neighbours, random_state=seed, n_jobs=1).fit_transform(points))


def _load(module: str, extra: str) -> Any:
    try:
        with warnings.catch_warnings():  # UMAP warns that a part of it that nobody asked for is missing
            warnings.simplefilter("ignore", ImportWarning)
            return extras.load(module, extra)
    except MissingExtra as error:
        hint = f"{error.hint}; or use the method pca, which needs nothing"
        raise MissingExtra(module.partition(".")[0], hint) from error


_METHODS: Mapping[str, Callable[[NDArray[np.float64], int], NDArray[np.float64]]] = {
    "tsne": _tsne,
    "umap": _umap,
    "pca": lambda points, _seed: points,
}
