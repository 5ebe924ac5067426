"""The code that runs inside the container: a spec comes in, events go out as they happen.

Mounted there as the package `rvvbench_runner`, hence relative imports only, and nothing beyond the standard library
and what the image has (torch, sglang, and our wheels sglang_rvv and sgl_kernel). Schemas: docs/architecture.md.
"""
