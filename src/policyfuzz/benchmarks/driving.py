"""Is a driving episode slower through us than in the loop a user would write? Same scenes, same expert."""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.benchmarks.measurement import Measurement, Track
from policyfuzz.target import Runner, Target
from policyfuzz.targets.driving import scenario
from policyfuzz.targets.driving.roads import ROADS
from policyfuzz.targets.registry import load_target

_ROUNDS = 3


def run(track: Track) -> list[Measurement]:
    """Measure both in turn, so that both meet the same machine; the processor's time counts."""
    target = load_target("driving-rl")
    inputs, runner = _inputs(target), Runner(target)
    # MetaDrive allows one engine per process, so the plain loop has a process of its own
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
        _ours(runner, inputs)  # both import and build what they need
        other.submit(_plain, inputs[:1], target.horizon).result()
        rates = [
            (_ours(runner, inputs), other.submit(_plain, inputs, target.horizon).result())
            for _ in track(range(_ROUNDS), "both loops in turn")
        ]
    # the round in the middle: the machine's mood then hits both sides alike
    ours, plain = sorted(rates, key=lambda pair: pair[0] / pair[1])[_ROUNDS // 2]
    baseline = "plain loop, new environment each episode"
    return [
        Measurement(baseline, plain, "steps/cpu-s"),
        Measurement(
            "rollout of driving-rl", ours, "steps/cpu-s", baseline, ours / plain, ">= 1", ours >= plain
        ),
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


def _plain(inputs: NDArray[np.float64], horizon: int) -> float:
    """Steps per second of processor time, with MetaDrive as it comes and its own expert, call by call.

    A new environment for each episode, since one that is used again drifts.
    """
    from metadrive.examples.ppo_expert.numpy_expert import expert

    steps, started = 0, time.process_time()
    for row in inputs:
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
