"""What the paper proves, measured."""

from pres.theory.candidates import candidates
from pres.theory.coherence import Coherence, CoherenceRow, memory_coherence
from pres.theory.convergence import Convergence, convergence_terms
from pres.theory.descent import Descent
from pres.theory.distance import Distance, DistanceRow, Tried, distance_to_exact
from pres.theory.lipschitz import largest_curvature
from pres.theory.state_space import StateSpace, StateSpaceRow, System, state_space_errors
from pres.theory.variance import Exponents, GradientVariance, VarianceRow, gradient_variance

__all__ = [
    "Coherence",
    "CoherenceRow",
    "Convergence",
    "Descent",
    "Distance",
    "DistanceRow",
    "Exponents",
    "GradientVariance",
    "StateSpace",
    "StateSpaceRow",
    "System",
    "Tried",
    "VarianceRow",
    "candidates",
    "convergence_terms",
    "distance_to_exact",
    "gradient_variance",
    "largest_curvature",
    "memory_coherence",
    "state_space_errors",
]
