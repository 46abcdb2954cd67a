import gymnasium
import pytest

from policyfuzz.core.errors import CampaignError
from policyfuzz.targets.registry import BUILT_INS
from policyfuzz.targets.trust import KNOWN_ENVIRONMENTS, named_code, require_trust

HARMLESS = [
    *((name, None) for name in BUILT_INS),
    ("acasxu:bucket=3", "acasxu:/some/folder"),
    ("driving-il", "driving:network.npz"),
    ("bipedal:horizon=full", "onnx:walker.onnx"),
    ("gym:CartPole-v1", "npz:weights.npz?rescale"),
    ("gym:CartPole-v1:env.sutton_barto_reward=true,oracle=terminated", "onnx:a.onnx"),
    ("gym:Ant-v5:env.xml_file=/their/ant.xml", "npz:a.npz"),
    ("gym:MiniGrid-FourRooms-v0:env.agent_view_size=5,wrap=minigrid.wrappers:ImgObsWrapper", "npz:a.npz"),
    ("gym:CartPole-v1:input=theta=-0.1..0.1;x=0", "npz:a.npz"),
    ("gym:CartPole-v1:input=bounds.toml", "npz:a.npz"),
    ("pettingzoo:mpe2.simple_tag_v3:reward=sum", "adversary=npz:a.npz;agent=onnx:b.onnx"),
    ("pettingzoo:mpe/simple_spread_v3", "npz:a.npz"),
]
CODE = [
    ("os:system:command=true", None, "os:system"),
    ("/their/target.py:make", None, "/their/target.py:make"),
    ("acasxu.py:make", None, "acasxu.py:make"),
    ("acasxu", "py:their.py:act", "py:their.py:act"),
    ("acasxu", "py:module:act?batch", "py:module:act?batch"),
    ("bipedal", "sb3:model.zip", "sb3:model.zip"),
    ("bipedal", "torchscript:model.ts", "torchscript:model.ts"),
    ("acasxu", "pickle:model.pkl", "pickle:model.pkl"),
    ("acasxu", "model.pkl", "model.pkl"),
    ("carla:host=far.example", "carla:autopilot", "far.example"),
    ("gym:subprocess:getoutput:env.cmd=true", "npz:a.npz", "subprocess:getoutput"),
    ("gym:their.py:Env", "npz:a.npz", "their.py:Env"),
    ("gym:their.py:Env-v0", "npz:a.npz", "their.py:Env-v0"),
    ("gym:module:Env-v0", "npz:a.npz", "module:Env-v0"),
    ("gym:gymnasium:CartPole-v1", "npz:a.npz", "gymnasium:CartPole-v1"),
    ("gym:GymV26Environment-v0:env.env_id=os:Env-v0", "npz:a.npz", "GymV26Environment-v0"),
    ("gym:Unheard-v0:env.config=/their/file.pkl", "npz:a.npz", "Unheard-v0"),
    ("gym:CartPole-v1:wrap=their:Wrapper", "npz:a.npz", "their:Wrapper"),
    ("gym:CartPole-v1:wrap=their.py:Wrapper", "npz:a.npz", "their.py:Wrapper"),
    ("gym:CartPole-v1:wrap=gymnasium.wrappers:sys.exit", "npz:a.npz", "gymnasium.wrappers:sys.exit"),
    ("gym:CartPole-v1:wrap=gymnasium.wrappers:ClipAction;os:system", "npz:a.npz", "os:system"),
    ("gym:CartPole-v1:input=their.py", "npz:a.npz", "their.py"),
    ("gym:CartPole-v1:input=their.py/", "npz:a.npz", "their.py/"),
    ("pettingzoo:their_module", "npz:a.npz", "their_module"),
    ("pettingzoo:mpe2evil", "npz:a.npz", "mpe2evil"),
    ("pettingzoo:pettingzoo.py", "npz:a.npz", "pettingzoo.py"),
    ("pettingzoo:folder/their.py", "npz:a.npz", "folder/their.py"),
    ("pettingzoo:pettingzoo.utils:wrappers", "npz:a.npz", "pettingzoo.utils:wrappers"),
    ("pettingzoo:mpe2.simple_tag_v3", "agent=py:a:b;npz:c.npz", "agent=py:a:b"),
    ("pettingzoo:mpe2.simple_tag_v3", "npz:c.npz; agent = sb3:b.zip", "agent = sb3:b.zip"),
    ("acasxu:bucket=1,bucket=2", None, "acasxu:bucket=1,bucket=2"),
    ("::", None, "::"),
]


@pytest.mark.parametrize(("target", "policy"), HARMLESS)
def test_built_in_names_need_no_trust(target, policy):
    assert named_code(target, policy) == []
    require_trust("the campaign", target, policy, trust=False)


@pytest.mark.parametrize(("target", "policy", "place"), CODE)
def test_code_is_named_and_refused(target, policy, place, monkeypatch):
    monkeypatch.delenv("POLICYFUZZ_TRUST", raising=False)
    assert [one.place for one in named_code(target, policy)] == [place]
    with pytest.raises(CampaignError) as refused:
        require_trust("the campaign in theirs", target, policy, trust=False)
    assert repr(place) in refused.value.message
    assert "--trust" in refused.value.hint
    require_trust("the campaign in theirs", target, policy, trust=True)
    monkeypatch.setenv("POLICYFUZZ_TRUST", "1")
    require_trust("the campaign in theirs", target, policy, trust=False)


def test_what_the_user_named_himself_is_not_asked_about():
    assert named_code(None, None) == []
    assert [one.place for one in named_code(None, "py:a:b")] == ["py:a:b"]


def test_escape_sequences_of_a_name_are_quoted():
    (one,) = named_code("os:system\x1b[2J\u202e", None)
    assert str(one).isprintable()


def test_all_environments_of_gymnasium_are_known_except_those_that_make_others():
    own = {
        name.rpartition("-v")[0]
        for name, spec in gymnasium.registry.items()
        if str(spec.entry_point).startswith("gymnasium.envs.")
    }
    assert own <= KNOWN_ENVIRONMENTS
    assert not {"GymV21Environment", "GymV26Environment"} & KNOWN_ENVIRONMENTS
