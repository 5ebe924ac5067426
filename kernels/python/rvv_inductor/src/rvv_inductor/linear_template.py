"""The C++ that a lowered linear compiles to: one call of a microkernel, for the rows that the graph has."""

from __future__ import annotations

from typing import Any

# First: `codegen.cpp_template` imports what imports it, unless `lowering` is there already.
import torch._inductor.lowering  # noqa: F401  # isort: split
from torch._inductor import config, ir
from torch._inductor.codegen.cpp_template import CppTemplate
from torch._inductor.utils import parallel_num_threads

from rvv_inductor import kernel_source
from rvv_inductor.kernel_source import Kernels

# What the signature needs. Torch's own header for kernels, with all of its vector classes, takes longer to compile than
# a linear: 0.6 of 1.5 s on x86_64, and more than ten times that under an emulator.
HEADER = """#include <c10/util/BFloat16.h>
namespace at { using namespace c10; }
"""

SOURCE = r"""
{{header}}
{{kernels}}
extern "C"
{{signature}}
{
  {{profile}}
  sgl_rvv::{{function}}<{{m}}, {{threads}}>({{arguments}});
}
"""


class LinearTemplate(CppTemplate):  # type: ignore[misc]
    """`input` [M, K] and a weight -> [M, N], all BF16; M, N and K are numbers. Nothing is fused into it."""

    kernels: Kernels
    function: str

    def __init__(self, inputs: list[Any], layout: ir.Layout) -> None:
        # 0: as many as OpenMP has when it runs.
        threads = 0 if config.cpp.dynamic_threads else parallel_num_threads()
        super().__init__(self.function, inputs, layout, num_threads=threads)

    def weight_arguments(self, kernel: Any, weight: Any) -> list[str]:
        """What the C++ function is told of the weight."""
        raise NotImplementedError

    def arguments(self, kernel: Any, x: Any, weight: Any, out: Any) -> list[str]:
        """The C++ function's arguments."""
        return [
            f"&{kernel.index(x, [0, 0])}",
            kernel.stride(x, 0),
            *self.weight_arguments(kernel, weight),
            kernel.size(out, 1),
            kernel.size(x, 1),
            f"&{kernel.index(out, [0, 0])}",
        ]

    def render(self, kernel: Any, template_buffer_node: Any = None, **_: Any) -> str:
        """The source; called once for its hash and once with the node that it computes."""
        x, weight = self.input_nodes if template_buffer_node is None else template_buffer_node.inputs
        out = self.output_node if template_buffer_node is None else template_buffer_node
        parts = {
            "signature": kernel.def_kernel(inputs={"X": x, "W": weight}, outputs={"Y": out}),
            "header": self.header().getvalue() if config.cpp.enable_kernel_profile else HEADER,
            "kernels": kernel_source.text_of(self.kernels),
            "profile": kernel.maybe_codegen_profile(),
            "function": self.function,
            "m": kernel.size(out, 0),
            "threads": str(self.num_threads),
            "arguments": ", ".join(self.arguments(kernel, x, weight, out)),
        }
        source = SOURCE
        for name, text in parts.items():
            source = source.replace("{{" + name + "}}", text)
        return source

    @classmethod
    def lower(cls, inputs: list[Any], layout: ir.Layout) -> Any:
        """The node that computes it."""
        node = cls(inputs, layout).generate().output_node()
        node.data.data.allow_epilogue_fusion = False
        return node


class PackedLinear(LinearTemplate):
    """The weight is packed, [ceil(N / 32), K, 32]."""

    kernels = kernel_source.PACKED
    function = "packed_linear_bf16"

    def weight_arguments(self, kernel: Any, weight: Any) -> list[str]:
        return [f"&{kernel.index(weight, [0, 0, 0])}"]


class RowMajorLinear(LinearTemplate):
    """The weight is [K, N] with strides (1, ld): the transpose of rows as they are in memory."""

    kernels = kernel_source.ROW_MAJOR
    function = "row_major_linear_bf16"

    def weight_arguments(self, kernel: Any, weight: Any) -> list[str]:
        return [f"&{kernel.index(weight, [0, 0])}", kernel.stride(weight, 1)]
