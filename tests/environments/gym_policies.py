"""Policies for Gymnasium environments, small enough to be read; all but `steady` have a fault to be found."""

import functools

import numpy as np


def steady(observations):
    """CartPole: keeps the pole up, and the cart in the middle."""
    return _balance(observations, 0.05, 0.15, 0.3)


def nearsighted(observations):
    """CartPole: keeps the pole up, and does not look where the cart is."""
    return _balance(observations, 0.0, 0.05, 0.4)


def _balance(observations, place, speed, spin):
    x, x_dot, theta, theta_dot = observations.T
    return (place * x + speed * x_dot + theta + spin * theta_dot > 0).astype(np.int64)


def lander(observation):
    """LunarLander: brakes, stays upright and goes for the pad, but sinks too fast near the ground."""
    x, y, x_speed, y_speed, angle, spin, left, right = observation
    turn = 0.6 * (np.clip(0.5 * x + x_speed, -0.4, 0.4) - angle) - spin
    lift = 0.6 * (0.6 * abs(x) - y) - 0.5 * y_speed
    if left or right:
        turn, lift = 0.0, -0.5 * y_speed
    if lift > max(abs(turn), 0.05):
        return 2
    return 3 if turn < -0.05 else 1 if turn > 0.05 else 0


def pendulum_on_cart(observations):
    """InvertedPendulum: linear, and too weak for a pole that falls fast."""
    gains = np.array([[0.3], [4.0], [0.0], [0.6]])
    return np.clip(np.einsum("nk,ka->na", observations, gains), -3, 3)


@functools.cache
def _taxi_actions():
    """(500,) the best action of every state, but for a passenger to the first stop in the middle of town."""
    import gymnasium

    env = gymnasium.make("Taxi-v4").unwrapped
    outcomes = [env.P[state][action][0] for state in range(500) for action in range(6)]
    _, following, rewards, ends = (np.array(part) for part in zip(*outcomes, strict=True))
    values = np.zeros(500)
    for _ in range(60):
        worths = (rewards + 0.95 * np.where(ends, 0.0, values[following.astype(int)])).reshape(500, 6)
        values = worths.max(axis=1)
    row, column, passenger, stop = np.array([list(env.decode(state)) for state in range(500)]).T
    to_first = (passenger == 4) & (stop == 0)
    return np.where(to_first & (row == 2) & (column == 2), 5, worths.argmax(axis=1))


def taxi(observations):
    """Taxi: the shortest way, but it lets a passenger to the first stop out half-way, or tries to."""
    return _taxi_actions()[observations]


def minigrid(image):
    """An empty room, as seen by ImgObsWrapper: to the goal where it sees it, else along the walls.

    It stands still for ever where the goal is three cells ahead, and not straight ahead.
    """
    places = np.argwhere(image[:, :, 0] == 8)
    if len(places) == 0:
        return 1 if image[3, 5, 0] == 2 else 2
    across, ahead = places[0]
    if ahead == 3 and across != 3:
        return 6
    return 2 if ahead < 6 else 0 if across < 3 else 1
