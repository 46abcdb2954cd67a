"""How the shipped policies of Gymnasium environments are made: PPO on the starts that the fuzzer draws."""
