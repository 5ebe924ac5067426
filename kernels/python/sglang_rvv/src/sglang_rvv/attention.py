"""The attention backend `rvv`: decode and extend over SGLang's KV pool, in our kernels.

What they do not compute (cross attention, a call that must not write the cache, sliding windows, attention that is not
causal) goes to SGLang's own `TorchNativeAttnBackend`, is said once for each reason, and is counted. Checked
against SGLang 0.5.15.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from sglang.srt.layers.attention.base_attn_backend import AttentionBackend
from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
from sglang.srt.layers.radix_attention import AttentionType
from sglang.srt.mem_cache.memory_pool import KVWriteLoc

from sglang_rvv import routing
from sglang_rvv.kv_pool import Int8KVPool
from sglang_rvv.upstream import IntegrationError

DECODE = "decode_attention"
EXTEND = "extend_attention"

FLOATING = (torch.bfloat16, torch.float16)
"""Types of queries, keys and values that the kernels know."""

MODES = ("EXTEND", "MIXED", "SPLIT_PREFILL")
"""Of SGLang's forward modes, those that bring new tokens under a causal mask; decoding has a way of its own."""

BY_TOKEN = float("nan")
"""For a scale of the INT8 operators: each row of the cache has its own, in the pool's buffers."""


class CountedTorchNative(TorchNativeAttnBackend):  # type: ignore[misc]
    """SGLang's attention in plain torch, counted."""

    def forward_extend(self, q: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        routing.count(EXTEND, q.shape[0], "torch")
        out: torch.Tensor = super().forward_extend(q, *args, **kwargs)
        return out

    def forward_decode(self, q: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        routing.count(DECODE, q.shape[0], "torch")
        out: torch.Tensor = super().forward_decode(q, *args, **kwargs)
        return out


class RVVAttnBackend(AttentionBackend):  # type: ignore[misc]
    """See the module's docstring. One object for each model runner."""

    def __init__(self, model_runner: Any) -> None:
        super().__init__()
        self.native = CountedTorchNative(model_runner)
        self.req_to_token_pool = model_runner.req_to_token_pool
        self.token_to_kv_pool = model_runner.token_to_kv_pool
        self.int8 = isinstance(self.token_to_kv_pool, Int8KVPool)
        self.max_extend_len = 0
        self.said: set[str] = set()
        heads = model_runner.model_config.num_attention_heads // model_runner.tp_size
        head_v = self.token_to_kv_pool.get_value_buffer(self.token_to_kv_pool.start_layer).shape[-1]
        # One buffer for good: what is captured or compiled may hold its address. Pages that no batch reaches are
        # never touched.
        self.attn_logits = torch.empty(
            (self.req_to_token_pool.size, heads, torch.get_num_threads(), head_v + 1), dtype=torch.float32
        )

    @property
    def capacity(self) -> int:
        """Sequences that a decode step can have."""
        slots: int = self.attn_logits.shape[0]
        return slots

    def init_forward_metadata(self, forward_batch: Any) -> None:
        """Once before the layers of a forward pass."""
        self.native.init_forward_metadata(forward_batch)
        if forward_batch.forward_mode.is_decode_or_idle():
            if forward_batch.batch_size > self.capacity:
                raise IntegrationError(
                    f"a batch of {forward_batch.batch_size} sequences, and the attention-logits buffer was made for "
                    f"{self.capacity}, as many as there are request slots",
                    mend="a larger --max-running-requests",
                )
            return
        if forward_batch.forward_mode.name not in MODES:
            raise IntegrationError(
                f"the attention backend rvv does not compute forward mode {forward_batch.forward_mode.name}",
                mend="--attention-backend torch_native, or no speculative decoding",
            )
        lengths = forward_batch.extend_seq_lens_cpu
        self.max_extend_len = max(lengths) if lengths is not None else int(forward_batch.extend_seq_lens.max())

    def forward_extend(
        self,
        q: torch.Tensor,
        k: torch.Tensor | None,
        v: torch.Tensor | None,
        layer: Any,
        forward_batch: Any,
        save_kv_cache: bool = True,
        **kwargs: Any,
    ) -> torch.Tensor:
        """q [tokens, heads * head], k and v [tokens, KV heads, head(_v)] -> [tokens, heads * head_v]."""
        why = self.not_ours(layer, k, v, save_kv_cache, kwargs)
        if why is not None or k is None or v is None:
            self.say(f"extend: {why}")
            return self.native.forward_extend(q, k, v, layer, forward_batch, save_kv_cache)
        query, out, shaped = self.operands(q, layer)
        routing.count(EXTEND, query.shape[0], "kernels")
        caches = self.caches(layer)
        batch = (
            self.req_to_token_pool.req_to_token,
            forward_batch.req_pool_indices,
            forward_batch.seq_lens,
            forward_batch.extend_seq_lens,
            forward_batch.extend_start_loc,
            self.max_extend_len,
            layer.scaling,
            layer.logit_cap,
        )
        if self.int8:
            scales = self.token_to_kv_pool.scale_buffers(layer.layer_id)
            torch.ops.sgl_kernel.extend_attention_int8_cpu(
                query, k, v, shaped, *caches, *batch, *scales, BY_TOKEN, BY_TOKEN
            )
        else:
            write = KVWriteLoc(forward_batch.out_cache_loc, None)
            self.token_to_kv_pool.set_kv_buffer(layer, write, k, v)
            torch.ops.sgl_kernel.extend_attention_cpu(query, k, v, shaped, *caches, *batch)
        return out

    def forward_decode(
        self,
        q: torch.Tensor,
        k: torch.Tensor | None,
        v: torch.Tensor | None,
        layer: Any,
        forward_batch: Any,
        save_kv_cache: bool = True,
        **kwargs: Any,
    ) -> torch.Tensor:
        """As `forward_extend`, with one token for each sequence."""
        why = self.not_ours(layer, k, v, save_kv_cache, kwargs)
        if why is not None or k is None or v is None:
            self.say(f"decode: {why}")
            return self.native.forward_decode(q, k, v, layer, forward_batch, save_kv_cache)
        query, out, shaped = self.operands(q, layer)
        routing.count(DECODE, query.shape[0], "kernels")
        operands = (
            query,
            *self.caches(layer),
            shaped,
            k,
            v,
            forward_batch.out_cache_loc,
            self.attn_logits[: query.shape[0]],
            self.req_to_token_pool.req_to_token,
            forward_batch.req_pool_indices,
            forward_batch.seq_lens,
        )
        if self.int8:
            scales = self.token_to_kv_pool.scale_buffers(layer.layer_id)
            torch.ops.sgl_kernel.decode_attention_int8_cpu(
                *operands, layer.scaling, layer.logit_cap, *scales, BY_TOKEN, BY_TOKEN
            )
        else:
            torch.ops.sgl_kernel.decode_attention_cpu(*operands, layer.scaling, layer.logit_cap)
        return out

    def operands(self, q: torch.Tensor, layer: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The query [tokens, heads, head], what is returned [tokens, heads * head_v], and its view by heads."""
        query = q.reshape(-1, layer.tp_q_head_num, layer.qk_head_dim)
        out = q.new_empty((query.shape[0], layer.tp_q_head_num * layer.v_head_dim))
        return query, out, out.view(-1, layer.tp_q_head_num, layer.v_head_dim)

    def caches(self, layer: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of the layer, [slots, KV heads, head(_v)]."""
        pool = self.token_to_kv_pool
        return pool.get_key_buffer(layer.layer_id), pool.get_value_buffer(layer.layer_id)

    def not_ours(
        self, layer: Any, k: torch.Tensor | None, v: torch.Tensor | None, save_kv_cache: bool, more: dict[str, Any]
    ) -> str | None:
        """Why our kernels do not compute this call; None where they do. Raises IntegrationError where nobody can."""
        why = None
        given = sorted(name for name, value in more.items() if value is not None)
        if given:
            raise IntegrationError(
                f"layer {layer.layer_id} asks for {', '.join(given)}, which neither our kernels nor torch_native do"
            )
        if layer.is_cross_attention:
            why = "cross attention"
        elif layer.attn_type == AttentionType.ENCODER_ONLY:
            why = "attention that is not causal"
        elif layer.sliding_window_size is not None and layer.sliding_window_size > -1:
            why = "a sliding window"
        elif not save_kv_cache or k is None or v is None:
            why = "save_kv_cache=False"
        elif layer.logit_cap and layer.logit_capping_method != "tanh":
            why = f"logits capped by {layer.logit_capping_method}"
        elif k.dtype not in FLOATING or (not self.int8 and k.dtype != self.token_to_kv_pool.dtype):
            why = f"keys of {k.dtype} in a cache of {self.token_to_kv_pool.dtype}"
        if why is not None and self.int8:
            raise IntegrationError(
                f"layer {layer.layer_id} needs {why}, which our kernels do not compute, and torch cannot read an "
                "INT8 KV cache",
                mend="--kv-cache-dtype auto",
            )
        return why

    def say(self, what: str) -> None:
        """Tell of a fallback, each once."""
        if what not in self.said:
            self.said.add(what)
            print(f"sglang_rvv: attention of SGLang's torch_native for {what}", file=sys.stderr, flush=True)

    def support_triton(self) -> bool:
        return False
