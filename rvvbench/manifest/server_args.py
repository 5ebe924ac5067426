"""Which fields of SGLang's ServerArgs a variant may not set, because something else in the manifests declares them."""

from __future__ import annotations

HARNESS_ARGS = frozenset(
    {
        "attention_backend",
        "base_gpu_id",
        "chunked_prefill_size",
        "context_length",
        "cpu_rvv_memory_budget_mib",
        "custom_weight_loader",
        "data_parallel_size",
        "dcp_size",
        "decode_attention_backend",
        "decrypted_config_file",
        "device",
        "disable_overlap_schedule",
        "disable_radix_cache",
        "dist_init_addr",
        "download_dir",
        "dp_size",
        "dtype",
        "enable_fp32_lm_head",
        "enable_lora",
        "enable_multimodal",
        "enable_tf32_matmul",
        "enable_torch_compile",
        "enable_torch_compile_debug_mode",
        "ep_size",
        "expert_parallel_size",
        "forward_hooks",
        "host",
        "incremental_streaming_output",
        "is_embedding",
        "json_model_override_args",
        "kv_cache_dtype",
        "load_format",
        "max_running_requests",
        "model_config_parser",
        "model_impl",
        "model_loader_extra_config",
        "model_path",
        "nnodes",
        "node_rank",
        "numa_node",
        "pipeline_parallel_size",
        "port",
        "pp_size",
        "preferred_sampling_params",
        "prefill_attention_backend",
        "quantization",
        "quantization_param_path",
        "quantize_and_serve",
        "random_seed",
        "revision",
        "rl_on_policy_target",
        "rl_quant_profile",
        "sampling_backend",
        "sampling_defaults",
        "skip_tokenizer_init",
        "sleep_on_idle",
        "stream_interval",
        "tensor_parallel_size",
        "tokenizer_backend",
        "tokenizer_mode",
        "tokenizer_path",
        "torch_compile_max_bs",
        "torchao_config",
        "tp_size",
        "trust_remote_code",
        "use_ray",
        "watchdog_timeout",
    }
)
HARNESS_PREFIXES = (
    "cpu_offload_",
    "disaggregation_",
    "dllm_",
    "kt_",
    "lora_",
    "modelopt_",
    "offload_",
    "remote_instance_",
    "speculative_",
)
"""Fields of SGLang's ServerArgs (0.5.15, their longer spellings, and the one that our plugin adds) that other keys of a
manifest declare, or that give a run other weights, other arithmetic, or another place. What sizes pools or schedules
stays a variant's own."""


def is_of_the_harness(key: str) -> bool:
    """Whether a variant may not set `key`."""
    name = key.replace("-", "_")
    return name in HARNESS_ARGS or name.startswith(HARNESS_PREFIXES)
