"""TorchInductor on RISC-V Vector without a change to torch.

`rvv_inductor.install.install()` puts it in place; importing this package does nothing.
"""

__version__ = "0.1.0"
