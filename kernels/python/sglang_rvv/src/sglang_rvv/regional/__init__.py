"""Regions of a model, its large linears, compiled by TorchInductor, one region for each projection and bucket of rows.

policy     what the arguments ask for
gate       which call a region computes, and in which bucket
adapters   where the projections are in the models that are known
callables  the compiled regions
install    giving them to a loaded model
loaded     the shared objects they are in
compiled   what a process has compiled
"""

from sglang_rvv.regional.compiled import report

__all__ = ["report"]
