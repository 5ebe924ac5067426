"""Obtaining pinned things: git sources, wheels, kernels, checkpoints."""
