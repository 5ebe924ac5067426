from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("mask", "capabilities", "has"),
    [
        (1 << 2, 0, True),
        (0, 0, False),
        # The kernel's answer wins over the letter, which also stands for RVV 0.7.
        (0, 1 << 21, False),
        (~(1 << 2) & (1 << 64) - 1, 1 << 21, False),
        # Kernels before 6.4.
        (None, 1 << 21, True),
        (None, ~(1 << 21) & 0xFFFFFFFF, False),
    ],
)
def test_the_kernel_says_whether_there_is_v(mask: int | None, capabilities: int, has: bool) -> None:
    from rvv_inductor.hwprobe import reports_vector

    assert reports_vector(mask, capabilities) is has


def test_another_architecture_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    from rvv_inductor import hwprobe

    monkeypatch.setattr(hwprobe, "extension_mask", lambda: pytest.fail("asked riscv_hwprobe"))
    monkeypatch.setattr(os, "uname", lambda: type("Uname", (), {"machine": "x86_64"})())
    assert not hwprobe.has_vector()
