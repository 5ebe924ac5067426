"""The out-of-tree CPU platform: one class on every architecture, so that a cross-check on x86_64 runs the code a
board runs.

SGLang 0.5.15 finds it through the entry point group `sglang.srt.platforms` in the middle of importing
`sglang.srt.utils.common`: nothing that imports that module may be imported here at the top.
"""

from __future__ import annotations

import os
import sys
from functools import cached_property
from typing import Any

from sglang.srt.platforms.cpu import CpuSRTPlatform
from sglang.srt.platforms.device_mixin import PlatformEnum

from sglang_rvv.settings import Settings
from sglang_rvv.upstream import IntegrationError

# What `ServerArgs._handle_cpu_backends` fills in on a CPU that is not arm64 when no backend was chosen, before we are
# asked.
SGLANG_CPU_DEFAULT = "intel_amx"
DEFAULT_ATTENTION = "torch_native"


def activate() -> str:
    """The entry point. Runs in every process that imports SGLang, workers included."""
    # torch of Debian is built without libuv, and TCPStore asks for it unless told otherwise.
    os.environ.setdefault("USE_LIBUV", "0")
    return f"{RvvPlatform.__module__}:{RvvPlatform.__qualname__}"


class RvvPlatform(CpuSRTPlatform):  # type: ignore[misc]
    """CPU, out of tree: SGLang's CUDA, AMX and vllm paths stay off, and pools and allocators are named here."""

    _enum = PlatformEnum.OOT
    device_name = "cpu"
    device_type = "cpu"

    @cached_property
    def settings(self) -> Settings:
        """What the environment asks for, read once per process."""
        return Settings.from_environment()

    def apply_server_args_defaults(self, server_args: Any) -> None:
        """Fill in what was left open (`ServerArgs.__post_init__`). A choice that cannot work here is refused, not
        replaced.
        """
        chosen = server_args.attention_backend
        if chosen in (None, SGLANG_CPU_DEFAULT):
            server_args.attention_backend = self.get_default_attention_backend()
        server_args.sampling_backend = "pytorch"
        if server_args.enable_torch_compile:
            raise IntegrationError(
                "--enable-torch-compile captures CPU graphs, which this platform does not have",
                upstream="sglang.srt.model_executor.model_runner.ModelRunner.init_decode_cuda_graph",
                mend="leave it off",
            )
        if self.settings.packed and server_args.enable_fp32_lm_head and "lm_head" in self.settings.packed:
            raise IntegrationError(
                "--enable-fp32-lm-head and a packed BF16 lm_head exclude each other",
                mend="drop one of them (SGLANG_RVV_PROJECTIONS without lm_head)",
            )
        disable_graphs(server_args)

    def get_default_attention_backend(self) -> str:
        return DEFAULT_ATTENTION

    def get_device(self, local_rank: int | None = None) -> str:
        """A string: `ServerArgs._handle_missing_default_values` splits it, although the interface says torch.device."""
        return "cpu"

    def get_mha_kv_pool_cls(self) -> type:
        from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool

        from sglang_rvv import hooks, scheduler_state

        hooks.check_model_prepared()
        scheduler_state.check()
        pool: type = MHATokenToKVPool
        return pool

    def get_mla_kv_pool_cls(self) -> type:
        raise IntegrationError(
            "latent attention (MLA) is not supported on this platform",
            upstream="sglang.srt.model_executor.model_runner_kv_cache_mixin",
        )

    def get_paged_allocator_cls(self) -> Any:
        """A factory: out of tree, `init_memory_pool` passes `page_size`, which the allocator for pages of one token
        does not take.
        """
        return make_allocator

    def init_backend(self) -> None:
        """Called while `sglang.srt.model_executor.model_runner` is being imported, in every process that will run a
        model.
        """
        from sglang_rvv import hooks

        hooks.install(self.settings)
        print(
            f"sglang_rvv: platform {type(self).__name__} on {os.uname().machine}; "
            f"packed linears: {', '.join(self.settings.packed) or 'off'}",
            file=sys.stderr,
            flush=True,
        )


def disable_graphs(server_args: Any) -> None:
    """Switch off graph capture of both phases; only the name `torch_native` would do so by itself."""
    from sglang.srt.model_executor.cuda_graph_config import Backend

    server_args.cuda_graph_config.decode.backend = Backend.DISABLED
    server_args.cuda_graph_config.prefill.backend = Backend.DISABLED


def make_allocator(size: int, *, page_size: int, **rest: Any) -> Any:
    """SGLang's allocator for pages of one token; the paged one allocates through Triton kernels."""
    from sglang.srt.mem_cache.allocator import TokenToKVPoolAllocator

    if page_size != 1:
        raise IntegrationError(
            f"page size {page_size} needs Triton kernels",
            upstream="sglang.srt.mem_cache.allocator.PagedTokenToKVPoolAllocator",
            mend="--page-size 1",
        )
    return TokenToKVPoolAllocator(size, **rest)
