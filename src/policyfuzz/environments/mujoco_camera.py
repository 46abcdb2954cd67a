"""Keeps the body of a MuJoCo environment in the picture. The environments' own camera stands still."""

from typing import Any

from policyfuzz.core import extras

#: Camera that most models bring for this.
_TRACKING = "track"
#: Number that stands for the free camera, which the environments choose.
_FREE = -1


def follow_body(env: Any) -> None:
    """Let the next picture of `env` show its body, if it is a MuJoCo environment without a chosen camera."""
    renderer, model = getattr(env, "mujoco_renderer", None), getattr(env, "model", None)
    if renderer is None or model is None or getattr(renderer, "camera_id", None) != _FREE:
        return
    mujoco = extras.load("mujoco", "mujoco")
    camera = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, _TRACKING)
    if camera != _FREE:
        renderer.camera_id = camera
        return
    viewer = getattr(renderer, "viewer", None)  # the first picture makes it
    if viewer is not None and model.njnt and model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
        viewer.cam.lookat[:] = env.data.xpos[model.jnt_bodyid[0]]
