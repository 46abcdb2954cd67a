"""How the collision-avoidance networks of the ACAS Xu target are made: solve, fit, evaluate."""
