"""Reproducible LLM-inference benchmarks on RISC-V Vector boards."""

__version__ = "0.1.0"
