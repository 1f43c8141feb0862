"""What the paper proves, measured."""

from pres.paper.theory.coherence import Coherence, CoherenceRow, memory_coherence
from pres.paper.theory.convergence import Convergence, convergence_terms
from pres.paper.theory.descent import Descent
from pres.paper.theory.distance import Distance, DistanceRow, Tried, candidates, distance_to_exact
from pres.paper.theory.gradients import largest_curvature
from pres.paper.theory.state_space import StateSpace, StateSpaceRow, System, state_space_errors
from pres.paper.theory.variance import Exponents, GradientVariance, VarianceRow, gradient_variance

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
