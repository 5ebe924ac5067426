"""Conditions of the machine around a run."""
