"""How the actors of the cooperative navigation target are made: train with MADDPG, evaluate."""
