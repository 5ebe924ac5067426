"""The shapes of a checkpoint, read from its Hugging Face `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rvvbench.errors import ManifestError

ORBIT = 64
"""Length of a successor cycle of the tokens (see `weights.py`): the vocabulary and the widths are multiples of it."""

_KNOWN = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


@dataclass(frozen=True)
class Rope:
    """Rotary embedding: base, and the `llama3` scaling of the low frequencies or None."""

    theta: float
    scaling: Mapping[str, Any] | None


@dataclass(frozen=True)
class Architecture:
    """What the generator has to know of a model. Widths are numbers of elements."""

    kind: str
    vocab_size: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    tied: bool
    rope: Rope
    bos_ids: tuple[int, ...]
    eos_ids: tuple[int, ...]

    @property
    def qkv_bias(self) -> bool:
        return self.kind == "Qwen2ForCausalLM"

    @property
    def qk_norm(self) -> bool:
        return self.kind == "Qwen3ForCausalLM"

    @property
    def q_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_dim

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Shape of every tensor by its name, sorted by name: the order in the file. Linear weights are [out, in]."""
        h, i = self.hidden, self.intermediate
        shapes: dict[str, tuple[int, ...]] = {
            "model.embed_tokens.weight": (self.vocab_size, h),
            "model.norm.weight": (h,),
        }
        if not self.tied:
            shapes["lm_head.weight"] = (self.vocab_size, h)
        for layer in range(self.layers):
            prefix = f"model.layers.{layer}."
            widths = {"q": self.q_width, "k": self.kv_width, "v": self.kv_width}
            for letter, width in widths.items():
                shapes[f"{prefix}self_attn.{letter}_proj.weight"] = (width, h)
                if self.qkv_bias:
                    shapes[f"{prefix}self_attn.{letter}_proj.bias"] = (width,)
            if self.qk_norm:
                shapes[prefix + "self_attn.q_norm.weight"] = (self.head_dim,)
                shapes[prefix + "self_attn.k_norm.weight"] = (self.head_dim,)
            shapes[prefix + "self_attn.o_proj.weight"] = (h, self.q_width)
            shapes[prefix + "mlp.gate_proj.weight"] = (i, h)
            shapes[prefix + "mlp.up_proj.weight"] = (i, h)
            shapes[prefix + "mlp.down_proj.weight"] = (h, i)
            shapes[prefix + "input_layernorm.weight"] = (h,)
            shapes[prefix + "post_attention_layernorm.weight"] = (h,)
        return dict(sorted(shapes.items()))


def read_architecture(config: Mapping[str, Any], where: str | None = None) -> Architecture:
    """The architecture of a `config.json`; `ManifestError` (at `where`) for one that the generator cannot write."""

    def fail(cause: str, mend: str) -> ManifestError:
        return ManifestError(cause, where=where, mend=mend)

    try:
        kind = str(config["architectures"][0])
        hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
        arch = Architecture(
            kind=kind,
            vocab_size=int(config["vocab_size"]),
            hidden=hidden,
            intermediate=int(config["intermediate_size"]),
            layers=int(config["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(config["num_key_value_heads"]),
            head_dim=int(config.get("head_dim") or hidden // heads),
            tied=bool(config.get("tie_word_embeddings", False)),
            rope=Rope(float(config["rope_theta"]), config.get("rope_scaling")),
            bos_ids=token_ids(config.get("bos_token_id")),
            eos_ids=token_ids(config.get("eos_token_id")),
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise fail(
            f"the model's config lacks or garbles {error}", "write the whole config.json under `config:`"
        ) from error
    if kind not in _KNOWN:
        raise fail(
            f"no synthetic weights for the architecture {kind}",
            f"use one of {', '.join(_KNOWN)}, or weights from the Hub",
        )
    if config.get("attention_bias") or config.get("mlp_bias"):
        raise fail("no synthetic weights for attention_bias or mlp_bias", "use weights from the Hub")
    dtype = config.get("torch_dtype", config.get("dtype"))
    if dtype != "bfloat16":
        raise fail(f"synthetic weights are bfloat16, not {dtype}", "set `torch_dtype: bfloat16`")
    if (
        any(n % ORBIT for n in (arch.vocab_size, arch.hidden, arch.intermediate, arch.head_dim))
        or arch.hidden < 4 * ORBIT
    ):
        raise fail(
            f"vocabulary and widths must be multiples of {ORBIT}", "choose such sizes, or use weights from the Hub"
        )
    if arch.heads % arch.kv_heads or arch.hidden % arch.kv_width or arch.intermediate < arch.hidden:
        raise fail(
            "synthetic weights need whole head groups, a hidden size that is a multiple of the key-value width, "
            "and an intermediate size that is no smaller than it",
            "choose such sizes, or use weights from the Hub",
        )
    return arch


def token_ids(value: object) -> tuple[int, ...]:
    """Token ids of a config field that may be null, one id or a list."""
    if value is None:
        return ()
    return tuple(int(v) for v in value) if isinstance(value, list | tuple) else (int(str(value)),)
