"""Drawing on machines without a screen."""

import os
import sys

import pytest

from policyfuzz.environments.simulator import prepare_headless

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Variables as on a machine without a screen; what is set in a test is gone after it."""
    monkeypatch.setattr(sys, "platform", "linux")
    for name in (*SCREENS, "SDL_VIDEODRIVER", "MUJOCO_GL", "PYGAME_HIDE_SUPPORT_PROMPT"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_pygame_looks_for_no_screen_where_there_is_none():
    prepare_headless()
    assert os.environ["SDL_VIDEODRIVER"] == "dummy"


@pytest.mark.parametrize("screen", SCREENS)
def test_pygame_uses_the_screen_where_there_is_one(monkeypatch, screen):
    monkeypatch.setenv(screen, ":0")
    prepare_headless()
    assert "SDL_VIDEODRIVER" not in os.environ


def test_choice_of_the_user_stands(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "offscreen")
    prepare_headless()
    assert os.environ["SDL_VIDEODRIVER"] == "offscreen"
