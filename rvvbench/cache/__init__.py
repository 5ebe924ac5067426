"""Inductor cache states."""
