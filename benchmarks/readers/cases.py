"""The readers, and how a case for each is made: files in an empty folder, and the commands that read them."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.readers import mutators
from benchmarks.readers.corpus import RIPPLE, copy
from benchmarks.readers.mutators import TEXTS

CART = "gym:CartPole-v1"
#: Limits for every search: a case may not run for long.
SMALL = ("--max-execs", "200", "--ui", "none", "--json")
QUICK = ("--episodes", "20")


@dataclass(frozen=True, slots=True)
class Case:
    """Command lines that are run one after another, and variables of the environment."""

    commands: list[list[str]]
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Leave out what no operating system can pass on: NUL, and half a pair of UTF-16."""
        for command in self.commands:
            command[:] = [word.replace("\0", "").replace("\ud800", "\udcff") for word in command]


#: Makes a case from draws, the corpus and an empty folder.
MakeCase = Callable[[Random, Path, Path], Case]


def campaign_files(rng: Random, corpus: Path, folder: Path) -> Case:
    """A campaign whose file was changed, read by every verb."""
    place = copy(corpus, "campaign", folder)
    mutators.sqlite_of(rng, place / "campaign.sqlite")
    name, number = "campaign", rng.choice(("1", "2", "0", "-1", "99999999999999999999", "x"))
    what = rng.choice(("findings", "errors", "seeds", "history"))
    ways = (
        ["status", name],
        ["status", name, "--json"],
        ["show", name],
        ["show", name, "--all", "--json"],
        ["show", name, number],
        ["show", name, "--errors"],
        ["export", name, "--what", what, "-o", f"out.{rng.choice(('csv', 'json', 'npz'))}"],
        ["replay", name, number, "--no-picture"],
        ["fuzz", RIPPLE, "--resume", "-o", name, *SMALL],
    )
    return Case([rng.choice(ways), rng.choice(ways)])


def sync_files(rng: Random, corpus: Path, folder: Path) -> Case:
    """A peer whose files were changed, read by another instance and by status."""
    shared = copy(corpus, "shared", folder)
    files = sorted(shared.glob("*/exchange/*"))
    path = rng.choice(files)
    match rng.randrange(12):
        case 0:
            path.unlink()
            os.mkfifo(path)
        case 1:
            path.unlink()
            path.symlink_to("/dev/zero")
        case 2:
            peer = path.parent.parent
            names = (b"\xff\xfe", b"\x1b[31m", b"a b", b"-x")
            peer.rename(peer.with_name(os.fsdecode(rng.choice(names))))
        case _:
            change = mutators.zip_of if path.suffix == ".npz" else mutators.json_of
            path.write_bytes(change(rng, path.read_bytes()))
    fuzz = ["fuzz", RIPPLE, "--sync", "shared", "--seed", "7", "--batch", "16", "--samples", "32", *SMALL]
    status = ["status", "shared", *rng.choice(([], ["--json"]))]
    return Case([status] if rng.random() < 0.5 else [fuzz, status])


def model_files(rng: Random, corpus: Path, folder: Path) -> Case:
    """A model file of any scheme with bytes, members, headers or values changed."""
    bytes_of, json_of, zip_of = mutators.bytes_of, mutators.json_of, mutators.zip_of
    kinds = {
        "layers.npz": (zip_of, CART, "npz:{}"),
        "bank.npz": (zip_of, CART, "npz:{}?rescale"),
        "actors.npz": (zip_of, "coopnavi", "coopnavi:{}"),
        "walker.json": (json_of, "bipedal", "bipedal:{}"),
        "model.zip": (zip_of, CART, "sb3:{}"),
        "module.ts": (zip_of, CART, "torchscript:{}"),
        "stats.pkl": (bytes_of, CART, "sb3:{}?normalize=stats.pkl"),
        "network.nnet": (bytes_of, "acasxu", "acasxu:."),
        "inside.onnx": (bytes_of, CART, "onnx:{}"),
        "outside.onnx": (bytes_of, CART, "onnx:{}"),
    }
    name = rng.choice([name for name in kinds if (corpus / name).exists()])
    change, target, uri = kinds[name]
    content = (corpus / name).read_bytes()
    if name == "network.nnet" and rng.random() < 0.7:
        changed = mutators.text_of(rng, content.decode(), ("1", "5", ",", "\n", "0.5", "-3")).encode(
            "utf-8", "replace"
        )
    else:
        changed = change(rng, content)
    for number in range(1, 6) if name == "network.nnet" else ():
        (folder / f"n_{number}_2.nnet").write_bytes(changed if number == 3 else content)
    (folder / name).write_bytes(changed)
    if name == "outside.onnx":
        (folder / "weights.bin").write_bytes((corpus / "weights.bin").read_bytes()[: rng.choice((0, 8, 32))])
    # with trust only what holds no pickle: bytes of others could become one that does harm
    trust = ["--trust"] if name == "model.zip" and rng.random() < 0.7 else []
    return Case([["check", target, "--policy", uri.format(name), *QUICK, *trust]])


_ORACLE_WORDS = (
    "terminated",
    "truncated",
    "nan",
    "exception",
    "out_of_space",
    "return",
    "reward",
    "info.x",
    "|",
    "&",
    "!",
    "(",
    ")",
    "<",
    "<=",
    "==",
    "as",
    "crash",
    "q5%",
    "q",
    "100",
    "-1e3",
    " ",
    "info.",
)


def oracle_texts(rng: Random, corpus: Path, folder: Path) -> Case:
    """An oracle text with words, signs and numbers changed."""
    copy(corpus, "layers.npz", folder)
    text = rng.choice(
        ("terminated", "return<q5% | (terminated & reward<=-1) as crash", "!info.ok | info.x>=3")
    )
    text = mutators.text_of(rng, text, _ORACLE_WORDS)
    return Case([["check", CART, "--policy", "npz:layers.npz", "--oracle", text, *QUICK]])


def input_texts(rng: Random, corpus: Path, folder: Path) -> Case:
    """A text or a TOML file that says what is varied, changed."""
    copy(corpus, "layers.npz", folder)
    words = (
        "x",
        "theta",
        "x_dot",
        "=",
        "..",
        ";",
        "seed",
        "state",
        "options",
        "0.1",
        "-1",
        "[",
        "]",
        "bounds",
        "fixed",
    )
    if rng.random() < 0.5:
        text = mutators.text_of(rng, "theta=-0.1..0.1;x=0", words)
    else:
        toml = (corpus / "input.toml").read_bytes()
        changed = mutators.text_of(rng, toml.decode(), words).encode("utf-8", "surrogatepass")
        (folder / "input.toml").write_bytes(changed if rng.random() < 0.7 else mutators.bytes_of(rng, toml))
        text = "input.toml"
    return Case([["check", CART, "--policy", "npz:layers.npz", "--input", text, *QUICK]])


def names(rng: Random, corpus: Path, folder: Path) -> Case:
    """Names and options of targets, and policy URIs, changed; none of them names code."""
    copy(corpus, "layers.npz", folder)
    words = (
        "ripple",
        "acasxu",
        "coopnavi",
        "bipedal",
        "gym",
        "dimensions",
        "bucket",
        "horizon",
        "=",
        ",",
        ":",
        "1",
        "2",
        "CartPole-v1",
        "env.",
        "fresh",
        "npz",
        "onnx",
        "sb3",
        "layers.npz",
        "?",
        "rescale",
        "&",
    )
    target = rng.choice(
        (
            RIPPLE,
            "acasxu:bucket=2",
            "coopnavi:finish=ends,horizon=30",
            f"{CART}:horizon=20,fresh=yes",
            "ripple",
        )
    )
    policy = rng.choice(
        ("npz:layers.npz", "npz:layers.npz?rescale", "onnx:x.onnx?state=a:b", "acasxu:.", "sb3:x?algo=ppo")
    )
    if rng.random() < 0.6:
        target = mutators.text_of(rng, target, words)
    else:
        policy = mutators.text_of(rng, policy, words)
    if names_code(target) or names_code(policy):
        target, policy = CART, "npz:layers.npz"
    given = ["--policy", policy] if target.startswith(CART) or rng.random() < 0.6 else []
    return Case([["check", target, *given, *QUICK]])


def names_code(text: str) -> bool:
    """True if a user who writes `text` asks for code, or for so much of a target that it takes long."""
    bad = (".py", "py:", "os:", "sys:", "planted", "subprocess", "carla", "driving", "pettingzoo", "module:")
    return any(word in text for word in bad)


#: Texts for a command line, where naming code means to run it, and naming a folder means to use it.
_HARMLESS = tuple(text for text in TEXTS if not names_code(text) and text not in ("/", "..", "../..", "~"))
_VARIABLES = (
    "COLUMNS",
    "LINES",
    "TERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "HOME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "POLICYFUZZ_TRUST",
    "MPLBACKEND",
    "MPLCONFIGDIR",
    "NUMBA_CACHE_DIR",
    "OMP_NUM_THREADS",
    "PYTHONPATH",
    "DISPLAY",
    "MUJOCO_GL",
)


def environment_variables(rng: Random, corpus: Path, folder: Path) -> Case:
    """Variables of the environment with hostile values."""
    copy(corpus, "campaign", folder)
    values = [text for text in TEXTS if "\0" not in text and "\ud800" not in text]
    chosen = {rng.choice(_VARIABLES): rng.choice(values) for _ in range(rng.choice((1, 2, 4)))}
    ways = (["status", "campaign"], ["show", "campaign"], ["check", RIPPLE, *QUICK], ["targets"], ["--help"])
    return Case([rng.choice(ways)], chosen)


#: Options of every verb: None for a flag, else values that are right.
_OPTIONS: dict[str, dict[str, tuple[str, ...] | None]] = {
    "fuzz": {
        "--policy": ("npz:layers.npz",),
        "--oracle": ("terminated",),
        "--input": ("seed",),
        "--horizon": ("50",),
        "--trust": None,
        "--strategy": ("portfolio", "mdpfuzz", "reward", "random"),
        "--max-time": ("5s",),
        "--max-findings": ("2",),
        "--timeout": ("5s",),
        "--seed": ("3",),
        "--sync": ("shared",),
        "--resume": None,
        "--ui": ("plain", "none"),
        "--json": None,
        "--force": None,
        "--batch": ("8",),
        "--window": ("3",),
        "--samples": ("9",),
        "--sensitivity": ("exact",),
        "--quantile": ("0.1",),
        "--freshness": ("mean",),
        "--tau": ("-3",),
        "--gamma": ("0.1",),
        "--components": ("3",),
        "--children": ("2",),
        "--when-empty": ("stop",),
        "--radius": ("0.1",),
        "--executor": ("inline",),
        "-o": ("new", "campaign"),
    },
    "check": {
        "--policy": ("npz:layers.npz",),
        "--oracle": ("terminated",),
        "--input": ("seed",),
        "--horizon": ("50",),
        "--episodes": ("9",),
        "--seed": ("3",),
        "--json": None,
        "--trust": None,
        "--timeout": ("5s",),
    },
    "status": {"--json": None},
    "show": {"--all": None, "--errors": None, "--json": None},
    "export": {
        "--what": ("findings", "seeds", "errors", "history"),
        "--format": ("csv", "json", "npz"),
        "-o": ("out.csv", "out.npz", "new/out.csv", "campaign"),
    },
    "replay": {
        "--policy": ("npz:layers.npz",),
        "--error": None,
        "--no-picture": None,
        "--json": None,
        "--trust": None,
        "--timeout": ("5s",),
    },
    "init": {"--policy": ("npz:layers.npz",), "-o": ("mine.py",), "--force": None, "--trust": None},
    "targets": {"--json": None},
}
_ARGUMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "fuzz": ((RIPPLE, "acasxu", CART, "rippel"),),
    "check": ((RIPPLE, "acasxu", "coopnavi", CART, "rippel"),),
    "status": (("campaign", "shared", "nowhere", "layers.npz"),),
    "show": (("campaign", "nowhere"), ("1", "2", "")),
    "export": (("campaign", "shared"),),
    "replay": (("campaign", "nowhere"), ("1", "2")),
    "init": ((CART, "", "ripple"),),
    "targets": (),
}
#: Options that take no hostile number: it would ask for so much time, memory or processes, and get it.
_COSTLY = (
    "--batch",
    "--samples",
    "--window",
    "--components",
    "--episodes",
    "--horizon",
    "--executor",
    "--sync",
)


def command_lines(rng: Random, corpus: Path, folder: Path) -> Case:
    """Command lines of real verbs and options, with values, words and order changed."""
    copy(corpus, "campaign", folder)
    copy(corpus, "layers.npz", folder)
    verb = rng.choice(list(_OPTIONS))
    words = [rng.choice(values) for values in _ARGUMENTS[verb]]
    for option in rng.sample(list(_OPTIONS[verb]), min(len(_OPTIONS[verb]), rng.randrange(5))):
        values = _OPTIONS[verb][option]
        hostile = option not in _COSTLY and rng.random() < 0.5
        text = rng.choice(_HARMLESS if hostile else values or ("",))
        words += (
            [option] if values is None else [option, text] if rng.random() < 0.8 else [f"{option}={text}"]
        )
    line = [verb, *(word for word in words if word)]
    if rng.random() < 0.3:
        line.insert(rng.randrange(len(line) + 1), rng.choice(_HARMLESS))
    if rng.random() < 0.2:
        del line[rng.randrange(len(line))]
    if "fuzz" in line:
        line += ["--max-execs", "60", "--max-time", "20s"]
    if "check" in line and "--episodes" not in line:
        line += ["--episodes", "20"]
    return Case([line])


READERS: dict[str, MakeCase] = {
    "campaign": campaign_files,
    "sync": sync_files,
    "model": model_files,
    "oracle": oracle_texts,
    "input": input_texts,
    "name": names,
    "environment": environment_variables,
    "command": command_lines,
}
