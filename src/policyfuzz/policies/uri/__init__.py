"""Policies named by a URI: SCHEME:PLACE, with options behind a question mark.

`sb3:FILE.zip`, `onnx:FILE`, `torchscript:FILE`, `npz:FILE`, `py:MODULE:FUNCTION` and `py:FILE.py:FUNCTION`.
A package adds a scheme of its own by an entry point of the group `policyfuzz.policies`: its name is the
scheme, and its object a function `load(rest, spaces, trust) -> LoadedPolicy`; `rest` stands behind the colon.
"""

import importlib
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

from policyfuzz.errors import PolicyError, TargetCodeError, UsageError, blamed_on, unknown_name
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.uri.file_kinds import suggestion

GROUP = "policyfuzz.policies"
Loader = Callable[[str, Spaces, bool], LoadedPolicy]

#: Scheme to the module that has `load`; imported only when it is used.
_MODULES = {
    "npz": "policyfuzz.policies.uri.npz_file",
    "onnx": "policyfuzz.policies.uri.onnx_file",
    "py": "policyfuzz.policies.uri.python_code",
    "sb3": "policyfuzz.policies.uri.sb3",
    "torchscript": "policyfuzz.policies.uri.torchscript_file",
}
#: How policies are named whose files can run code while they are loaded.
_TRUSTED = ("sb3:", "torchscript:")
#: What people call these schemes, too different for a did-you-mean by spelling.
_OTHER_NAMES = {
    "jit": "torchscript",
    "numpy": "npz",
    "pt": "torchscript",
    "python": "py",
    "pytorch": "torchscript",
    "stable-baselines3": "sb3",
    "stable_baselines3": "sb3",
    "torch": "torchscript",
}


def load_policy(uri: str, spaces: Spaces, trust: bool = False) -> LoadedPolicy:
    """The policy at `uri`, sure to act in `spaces`.

    `trust` allows what may run code that the file brings along: unpickling, and TorchScript. Nothing of a
    file that needs it is read without.
    """
    scheme, colon, rest = uri.partition(":")
    meant = None if scheme in _MODULES else suggestion(uri)
    if not colon or len(scheme) == 1:  # one letter is the drive of a Windows path
        raise _no_scheme(uri, meant)
    loaded = _loader(scheme, meant)(rest, spaces, trust)
    if not isinstance(loaded, LoadedPolicy):
        raise PolicyError(f"the loader of {scheme}: returned {type(loaded).__name__}, expected LoadedPolicy")
    return loaded


def needs_trust(policy: str | None) -> bool:
    """True where a policy of this URI, or one of several, is only loaded from a file that is trusted."""
    parts = () if policy is None else policy.split(";")
    return any(part.split("=")[-1].startswith(_TRUSTED) or part.startswith(_TRUSTED) for part in parts)


def schemes() -> tuple[str, ...]:
    """All schemes that can be used here, those of installed packages included."""
    return tuple(sorted({*_MODULES, *(point.name for point in entry_points(group=GROUP))}))


def _loader(scheme: str, meant: str | None) -> Loader:
    if scheme in _MODULES:
        load: Loader = importlib.import_module(_MODULES[scheme]).load
        return load
    points = list(entry_points(group=GROUP, name=scheme))
    if points:
        return _from_package(scheme, points)
    other = _OTHER_NAMES.get(scheme.lower(), scheme.lower())
    if other in _MODULES:
        raise UsageError(f"unknown policy scheme {scheme!r}", hint=f"did you mean {other!r}?")
    error = unknown_name("policy scheme", scheme, schemes())
    raise UsageError(error.message, hint=f"did you mean {meant}?" if meant else error.hint)


def _from_package(scheme: str, points: list[EntryPoint]) -> Loader:
    """The loader that an installed package brings for `scheme`."""
    names = sorted(f"{point.value} of {point.dist.name if point.dist else 'unknown'}" for point in points)
    if len(set(names)) > 1:
        raise PolicyError(
            f"several packages bring policy scheme {scheme!r}: {', '.join(names)}",
            hint="uninstall all but one",
        )
    whose = f"policy scheme {scheme}: ({names[0]})"
    try:
        load: Loader = points[0].load()
    except Exception as error:  # whatever the package raises when it is imported
        raise TargetCodeError.of(whose, error) from error

    def guarded(rest: str, spaces: Spaces, trust: bool) -> LoadedPolicy:
        with blamed_on(whose):
            return load(rest, spaces, trust)

    return guarded


def _no_scheme(uri: str, meant: str | None) -> UsageError:
    if meant is not None:
        return UsageError(f"policy {uri!r} does not say what it is", hint=f"did you mean {meant}?")
    close = unknown_name("policy scheme", uri, schemes()).hint
    return UsageError(f"policy {uri!r} is not of the form SCHEME:FILE", hint=close)
