"""Inputs: named, typed dimensions, the unit cube, and joint constraints."""

from policyfuzz.inputs.dimensions import Angle, Choice, Dimension, Integer, Real, Seed
from policyfuzz.inputs.space import InputSpace

__all__ = ["Angle", "Choice", "Dimension", "InputSpace", "Integer", "Real", "Seed"]
