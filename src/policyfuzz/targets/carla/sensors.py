"""What sensors send: CARLA's threads put it down, the step loop picks it up."""

import queue
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Inbox:
    """The messages of one sensor, in the order in which they came."""

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def put(self, message: Any) -> None:
        """Take a message; called by threads of CARLA."""
        self._messages.put(message)

    def drain(self) -> list[Any]:
        """All messages that have come."""
        return [self._messages.get() for _ in range(self._messages.qsize())]

    def wait_for(self, frame: int, seconds: float) -> Any:
        """The message of `frame` or a later one; older ones are dropped."""
        while True:
            try:
                message = self._messages.get(timeout=seconds)
            except queue.Empty:
                raise RuntimeError(f"no sensor data for frame {frame} within {seconds:g} s") from None
            if message.frame >= frame:
                return message


def picture_of(image: Any) -> NDArray[np.uint8]:
    """(height, width, 3) red, green and blue of a carla.Image, which holds blue, green, red, alpha."""
    pixels = np.frombuffer(image.raw_data, np.uint8).reshape(image.height, image.width, 4)
    return pixels[:, :, 2::-1].copy()
