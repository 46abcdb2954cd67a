"""Every built-in target keeps to what any target must."""

from policyfuzz.conformance.suite import TargetConformance


class TestAcasXu(TargetConformance):
    target = "acasxu"
    episodes = 200
    executions = 6000


class TestCoopNavi(TargetConformance):
    target = "coopnavi"
    episodes = 100
    executions = 6000


class TestRipple(TargetConformance):
    target = "ripple:dimensions=3,probability=0.01"
    episodes = 50
    executions = 3000
