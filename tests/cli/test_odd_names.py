"""Names, paths and values that nobody means: each is refused with a sentence, none is an internal error."""

import os
import sys
from pathlib import Path

import pytest

import policyfuzz as pf
from policyfuzz.core.errors import PolicyFuzzError, UsageError

GYM = ("check", "gym:CartPole-v1", "--episodes", 1)
ACT = ("--policy", "py:act.py:act")
LONG, DIGITS = "a" * 5000, "9" * 5000
NOBODY = "~no-such-user-here/x"


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("act.py").write_text("def act(observation): return 0\n")
    Path("folder.py").mkdir()
    os.mkfifo("fifo.py")


ODD = {
    "function of Python that exits": ("check", "sys:exit"),
    "function of Python as a policy": (*GYM, "--policy", "py:builtins:print"),
    "unknown user, npz": (*GYM, "--policy", f"npz:{NOBODY}"),
    "unknown user, sb3": (*GYM, "--policy", f"sb3:{NOBODY}"),
    "unknown user, statistics": (*GYM, "--policy", f"sb3:act.py?normalize={NOBODY}"),
    "unknown user, py": (*GYM, "--policy", f"py:{NOBODY}.py:act"),
    "unknown user, no scheme": (*GYM, "--policy", NOBODY),
    "unknown user, target": ("check", f"{NOBODY}.py:make"),
    "unknown user, environment": ("check", f"gym:{NOBODY}.py:Env", *ACT),
    "unknown user, wrapper": ("check", f"gym:CartPole-v1:wrap={NOBODY}.py:Wrapper", *ACT),
    "unknown user, input": (*GYM, *ACT, "--input", f"{NOBODY}.py"),
    "long file, target": ("check", f"{LONG}.py:make"),
    "long file, npz": (*GYM, "--policy", f"npz:{LONG}"),
    "long file, py": (*GYM, "--policy", f"py:{LONG}.py:act"),
    "long file, sb3": (*GYM, "--policy", f"sb3:{LONG}"),
    "long file, no scheme": (*GYM, "--policy", LONG),
    "long file, input": (*GYM, *ACT, "--input", f"{LONG}.toml"),
    "long file, input in Python": (*GYM, *ACT, "--input", f"{LONG}.py"),
    "long file, init": ("init", "-o", f"{LONG}.py"),
    "long folder, show": ("show", LONG),
    "long folder, status": ("status", LONG),
    "long folder, export": ("export", LONG, "-o", "x.csv"),
    "long folder, replay": ("replay", LONG, 1),
    "long folder, fuzz": ("fuzz", "ripple", "--max-execs", 10, "-o", LONG),
    "long folder, resume": ("fuzz", "ripple", "--max-execs", 10, "-o", LONG, "--resume"),
    "long folder, sync": ("fuzz", "ripple", "--max-execs", 10, "--sync", LONG),
    "NUL, folder": ("show", "a\0b"),
    "NUL, target": ("check", "a\0b.py:make"),
    "NUL, policy": (*GYM, "--policy", "npz:a\0b"),
    "NUL, module": ("check", "a\0b:make"),
    "half a surrogate pair": (*GYM, "--policy", "npz:\udcff"),
    "half a surrogate pair, file": ("check", "\udcff.py:make"),
    "folder": ("check", "folder.py:make"),
    "pipe": ("check", "fifo.py:make"),
    "root": (*GYM, "--policy", "npz:/"),
    "root, sb3": (*GYM, "--policy", "sb3:/"),
    "digits, horizon": ("check", f"bipedal:horizon={DIGITS}"),
    "digits, option": ("check", f"acasxu:bucket={DIGITS}"),
    "digits, input": (*GYM, *ACT, "--input", f"theta=0..{DIGITS}"),
    "digits, argument": ("check", f"gym:CartPole-v1:env.x={DIGITS}", *ACT),
    "nested argument": ("check", f"gym:CartPole-v1:env.x={'-' * 5000}1", *ACT),
    "brackets in an argument": ("check", f"gym:CartPole-v1:env.x={'(' * 5000}", *ACT),
    "dictionary that cannot be": ("check", "gym:CartPole-v1:env.x={[]: 1}", *ACT),
    "brackets in an input": (*GYM, *ACT, "--input", "(" * 5000),
    **{
        f"target {name!r}": ("check", name)
        for name in ("", " ", ":", "::", "a:", ":a", ".:a", "..a:b", "gym:")
    },
    **{
        f"environment {name!r}": ("check", f"gym:{name}", *ACT)
        for name in (" ", "a b-v0", ":", "a:b:c", "..:x")
    },
    "empty policy": ("check", "acasxu", "--policy", ""),
    "blank policy": ("check", "acasxu", "--policy", " "),
    "empty policy to fuzz": ("fuzz", "acasxu", "--policy", "", "--max-execs", 1),
    "empty policy among several": (*GYM, *ACT, "--policy", ""),
    "empty policy of a file": ("init", "gym:CartPole-v1", "--policy", ""),
    "empty oracle": (*GYM, *ACT, "--oracle", ""),
    "blank oracle": (*GYM, *ACT, "--oracle", " "),
    "empty input": (*GYM, *ACT, "--input", ""),
    "empty target of a file": ("init", ""),
}


@pytest.mark.parametrize("command", ODD.values(), ids=ODD)
def test_it_is_refused_with_a_sentence(cli, command):
    before = sorted(Path().iterdir())
    code, out, err = cli(*command)
    assert code in (2, 3), (out, err)
    assert "internal error" not in err
    assert err.strip()
    assert sorted(path for path in Path().iterdir() if path.name != "__pycache__") == before, (
        "a file was left"
    )


def test_empty_policy_of_a_replay_is_refused(cli, campaign):
    for option in ("--policy", "--target"):
        assert cli("replay", campaign, 1, option, "")[0] == 2


@pytest.mark.parametrize("policy", ["", " "])
def test_empty_texts_are_refused_in_python(policy):
    with pytest.raises(UsageError, match="policy is"):
        pf.fuzz("acasxu", policy, max_execs=1, progress=False)
    with pytest.raises(UsageError, match="oracle is"):
        pf.check("gym:CartPole-v1", "py:act.py:act", oracle=policy, episodes=1)
    with pytest.raises(UsageError, match="input is"):
        pf.check("gym:CartPole-v1", "py:act.py:act", input=policy, episodes=1)
    with pytest.raises(PolicyFuzzError):
        pf.check(policy)
