"""Every built-in target keeps to what any target must."""

from importlib.util import find_spec

import pytest

from policyfuzz.conformance.suite import TargetConformance


def needs(package: str, extra: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(package) is None, reason=f"needs the extra {extra}")


class TestAcasXu(TargetConformance):
    target = "acasxu"
    episodes = 100
    executions = 1200


class TestCoopNavi(TargetConformance):
    target = "coopnavi"
    episodes = 50
    executions = 2400
    seed = 3  # its campaign has findings


class TestCoopNaviThatCountsEveryTouch(TargetConformance):
    target = "coopnavi:collisions=0,finish=ignored"  # has findings within few episodes
    executions = 400


class TestRipple(TargetConformance):
    target = "ripple:dimensions=3,probability=0.01"
    episodes = 50
    executions = 600


@pytest.mark.slow
@needs("Box2D", "bipedal")
class TestBipedal(TargetConformance):
    target = "bipedal"
    executions = 120


@pytest.mark.slow
@needs("metadrive", "metadrive")
class TestDrivingByReinforcement(TargetConformance):
    target = "driving-rl"
    episodes = 4
    seed = 2  # its campaign has a finding


@pytest.mark.slow
@needs("metadrive", "metadrive")
class TestDrivingByImitation(TargetConformance):
    target = "driving-il:horizon=60"  # as driving-rl, but for the network
    episodes = 4
    seed = 2  # its campaign has findings
