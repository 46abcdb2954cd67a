"""Is a driving episode slower through us than in the loop a user would write? Same scenes, same expert."""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measurement import Measurement, Track
from policyfuzz.core.target import Runner, Target
from policyfuzz.targets.driving import scenario
from policyfuzz.targets.driving.roads import ROADS
from policyfuzz.targets.registry import load_target

_ROUNDS = 3


def run(track: Track) -> list[Measurement]:
    """Measure all in turn, so that all meet the same machine; the processor's time counts."""
    target = load_target("driving-rl")
    inputs, runner = _inputs(target), Runner(target)
    # MetaDrive allows one engine per process, so the plain loops run in another process
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:

        def plain(rows: NDArray[np.float64], is_new: bool) -> float:
            return other.submit(_plain, rows, target.horizon, is_new).result()

        _ours(runner, inputs)  # both import and build what they need
        plain(inputs[:1], True)
        rates = [
            (_ours(runner, inputs), plain(inputs, True), plain(inputs, False))
            for _ in track(range(_ROUNDS), "all loops in turn")
        ]
    return [
        *_against("plain loop, new environment each episode", [(one[0], one[1]) for one in rates]),
        *_against("plain loop, one environment (drifts)", [(one[0], one[2]) for one in rates]),
    ]


def _against(baseline: str, rates: list[tuple[float, float]]) -> list[Measurement]:
    """Ours against a plain loop in the round in the middle: the machine's mood then hits both alike."""
    ours, plain = sorted(rates, key=lambda pair: pair[0] / pair[1])[_ROUNDS // 2]
    ratio, unit = ours / plain, "steps/cpu-s"
    return [
        Measurement(baseline, plain, unit),
        Measurement("rollout of driving-rl", ours, unit, baseline, ratio, ">= 1", ratio >= 1),
    ]


def _inputs(target: Target) -> NDArray[np.float64]:
    """(roads, d) a valid and solvable input on each road."""
    drawn = target.inputs.sample(np.random.default_rng(0), 400)
    drawn = drawn[target.inputs.is_valid(drawn) & scenario.is_solvable(drawn)]
    return np.concatenate([drawn[drawn[:, 0] == number][:1] for number in range(len(ROADS))])


def _ours(runner: Runner, inputs: NDArray[np.float64]) -> float:
    """Steps per second of processor time, through the rollout that campaigns use."""
    started = time.process_time()
    executions = runner(inputs, np.zeros(len(inputs), np.uint64))
    return int((executions.lengths - 1).sum()) / (time.process_time() - started)


def _plain(inputs: NDArray[np.float64], horizon: int, is_new: bool) -> float:
    """Steps per second of processor time, with MetaDrive as it comes and its own expert, call by call.

    With `is_new` there is an environment for each episode, since one that is used again drifts.
    """
    from metadrive.examples.ppo_expert.numpy_expert import expert

    steps, started = 0, time.process_time()
    environment = _plain_environment()
    for row in inputs:
        if is_new:
            environment.close()
            environment = _plain_environment()
        environment.start(scenario.scene(row), owner=None)
        has_ended, left = False, horizon
        while left and not has_ended:
            _, _, has_ended, _, _ = environment.step(expert(environment.agent, deterministic=True))
            left -= 1
        steps += horizon - left
    environment.close()
    return steps / (time.process_time() - started)


def _plain_environment() -> Any:
    """An environment in which the other vehicles are MetaDrive's own in everything."""
    from metadrive.component.navigation_module.node_network_navigation import NodeNetworkNavigation
    from metadrive.manager.traffic_manager import PGTrafficManager
    from metadrive.policy.idm_policy import IDMPolicy

    from policyfuzz.targets.driving.engine import SceneEnv, TrafficManager

    class PlainTraffic(TrafficManager):
        navigation = NodeNetworkNavigation
        driver = IDMPolicy
        after_step = PGTrafficManager.after_step

    class PlainEnv(SceneEnv):
        traffic = PlainTraffic

        @classmethod
        def default_config(cls) -> Any:
            config = super().default_config()
            config.update({"enable_idm_lane_change": False}, allow_add_new_key=True)
            return config

    return PlainEnv()
