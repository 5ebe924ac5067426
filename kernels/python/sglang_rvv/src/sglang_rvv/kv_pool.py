"""The INT8 KV pool: codes, and a scale for each token and KV head of keys and of values.

Only the attention kernels know how to write it: they quantise new rows and store codes and scales in one call.
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool

from sglang_rvv.upstream import IntegrationError

SCALE_BYTES = 4


class Int8KVPool(MHATokenToKVPool):  # type: ignore[misc]
    """SGLang's pool of keys and values [slots, KV heads, head(_v)] in INT8, with FP32 scales [slots, KV heads]."""

    def _create_buffers(self) -> None:
        if self.kv_cache_layout != "nhd":
            raise IntegrationError(f"the INT8 KV cache has the layout nhd, not {self.kv_cache_layout}")
        super()._create_buffers()
        self.k_scale_buffer, self.v_scale_buffer = (
            [
                torch.zeros((buffer.shape[0], self.head_num), dtype=torch.float32, device=self.device)
                for buffer in buffers
            ]
            for buffers in (self.k_buffer, self.v_buffer)
        )

    def scale_buffers(self, layer_id: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Scales of keys and of values of a layer."""
        index = layer_id - self.start_layer
        return self.k_scale_buffer[index], self.v_scale_buffer[index]

    def get_kv_size_bytes(self) -> tuple[int, int]:
        """Of keys and of values, with their scales."""
        keys, values = super().get_kv_size_bytes()
        return (
            keys + sum(scales.nbytes for scales in self.k_scale_buffer),
            values + sum(scales.nbytes for scales in self.v_scale_buffer),
        )

    def set_kv_buffer(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Codes without their scales would be noise."""
        self._refuse("set_kv_buffer")

    def move_kv_cache(self, *args: Any, **kwargs: Any) -> NoReturn:
        """SGLang moves codes only."""
        self._refuse("move_kv_cache")

    def get_cpu_copy(self, *args: Any, **kwargs: Any) -> NoReturn:
        """SGLang copies codes only."""
        self._refuse("get_cpu_copy")

    def load_cpu_copy(self, *args: Any, **kwargs: Any) -> NoReturn:
        """SGLang copies codes only."""
        self._refuse("load_cpu_copy")

    def get_contiguous_buf_infos(self) -> NoReturn:
        """SGLang sends codes only."""
        self._refuse("get_contiguous_buf_infos")

    def _refuse(self, function: str) -> NoReturn:
        raise IntegrationError(
            f"an INT8 KV cache cannot be used through {function}, which knows nothing of its scales",
            upstream=f"sglang.srt.mem_cache.memory_pool.MHATokenToKVPool.{function}",
            mend="--kv-cache-dtype auto",
        )


def scale_bytes_per_token(kv_heads: int, layers: int) -> int:
    """Bytes of scales, of keys and values together, that a token takes beside its codes."""
    return 2 * SCALE_BYTES * kv_heads * layers
