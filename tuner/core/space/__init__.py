"""The search space: named parameters, conditions and constraints between them."""

from tuner.core.space.parameters import Categorical, Integer, Parameter, Real
from tuner.core.space.space import SearchSpace

__all__ = ["Categorical", "Integer", "Parameter", "Real", "SearchSpace"]
