"""How the network of the bipedal target is made: imitate, improve, evaluate."""
