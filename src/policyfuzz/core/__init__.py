"""What every other package rests on: inputs, rollout, executions, targets, settings and errors."""
