"""Pictures that environments draw of themselves, also where there is no screen."""

import os
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import CannotRender
from policyfuzz.extras import install_hint

#: Words of a failing renderer that tell that OpenGL is not there.
_OPENGL = ("OpenGL", "glGetError", "EGL", "GLFW")


def prepare_headless() -> None:
    """Have MuJoCo and pygame draw without a screen, where the user has not said how."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")


def picture_of(env: Any) -> NDArray[np.uint8]:
    """What `env` draws of itself (height, width, 3)."""
    prepare_headless()
    try:
        picture = env.render()
    except Exception as error:  # every renderer has its own
        text = f"{type(error).__name__}: {error}"
        raise CannotRender(f"the environment cannot draw itself: {text}", _hint(text)) from error
    pixels = np.asarray(picture)
    if pixels.dtype.kind not in "biuf":
        raise CannotRender(f"the environment cannot draw itself: render() gave {type(picture).__name__}")
    return pixels


def _hint(text: str) -> str:
    if any(word in text for word in _OPENGL):
        return (
            "MuJoCo draws without a screen by EGL or OSMesa: install libegl1 and libgl1-mesa-dri,"
            " or libosmesa6 and set MUJOCO_GL=osmesa"
        )
    return install_hint("gym") if "pygame" in text else ""
