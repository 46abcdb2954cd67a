"""Stills of findings, made in a process of their own."""

import io
import os

import numpy as np
import pytest
from PIL import Image

from policyfuzz import Target
from policyfuzz.report.stills import Stills, still
from policyfuzz.store.records import Finding
from policyfuzz.targets.registry import load_target
from tests.conformance import broken_targets

pytestmark = pytest.mark.slow  # starts interpreters


def pictured(target: Target, *findings: Finding) -> tuple[dict[int, bytes], list[str]]:
    """The stills of `findings` by their number, and what was said."""
    heard: dict[int, bytes] = {}
    said: list[str] = []
    stills = Stills(target, lambda finding, png: heard.update({finding.id: png}), said.append)
    for one in findings:
        stills.add(one)
    stills.close(seconds=300)
    return heard, said


def test_still_shows_the_crash_as_a_film_does(run_campaign):
    target = load_target("acasxu")
    findings = run_campaign(target, executions=1500).findings()[:2]
    heard, said = pictured(target, *findings)
    assert said == []
    assert list(heard) == [one.id for one in findings]
    assert heard[findings[0].id] == still(target, findings[0]), "another process draws the same"
    picture = np.asarray(Image.open(io.BytesIO(heard[findings[0].id])))
    assert (np.abs(picture[10, :4].astype(int) - (208, 32, 32)) < 10).all(), "in the red frame of a crash"


def test_simulator_that_cannot_render_is_no_trouble(run_campaign):
    campaign = run_campaign("ripple:dimensions=3,probability=0.05", executions=500)
    heard, said = pictured(load_target("ripple:dimensions=3,probability=0.05"), campaign.findings()[0])
    assert (heard, said) == ({}, [])


class Deadly(broken_targets.Walk):
    """Ends its process when it is pictured."""

    def render(self, row):
        os.kill(os.getpid(), 9)


def test_simulator_that_dies_costs_the_pictures_only(run_campaign):
    from dataclasses import replace

    target = broken_targets.sound()
    finding = run_campaign(target, executions=300).findings()[0]
    heard, said = pictured(replace(target, simulator=Deadly), finding, finding)
    assert heard == {}
    assert len(said) == 1
    assert "no pictures of new modes" in said[0]
