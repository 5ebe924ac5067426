"""A report as a roofline plot: SVG written by hand, so that equal reports give equal bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from xml.sax.saxutils import escape

from rvvbench.kernel_model.report import Report, Row
from rvvbench.kernel_model.roofline import BANDWIDTHS_BYTES_PER_S, CLOCK_HZ, CORES, MACS_PER_CYCLE

WIDTH, HEIGHT = 860, 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 250, 40, 60
# Multiply-adds per byte, and multiply-adds per cycle and core.
_X = (0.25, 128.0)
_Y = (0.125, 16.0)
_COLOURS = ("#1b6ca8", "#c8553d", "#2a9d5c", "#8f5cc2", "#b8860b", "#3d3d3d", "#d6336c", "#0b7285")


def svg(report: Report) -> str:
    """Multiply-adds per cycle and core over multiply-adds per byte, both logarithmic, under both bandwidths' roofs."""
    groups = list(dict.fromkeys(_group(row) for row in report.rows if _rated(row)))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(_LEFT, 22, "Modelled rate of one X60 core, data in L1, under the roofs of the K1", size=15),
        *_axes(),
        *_roofs(),
    ]
    for index, group in enumerate(groups):
        colour = _COLOURS[index % len(_COLOURS)]
        parts += [_dot(row, colour) for row in report.rows if _rated(row) and _group(row) == group]
        y = _TOP + 20 + 20 * index
        parts.append(f'<circle cx="{WIDTH - _RIGHT + 24}" cy="{y - 4}" r="4" fill="{colour}"/>')
        parts.append(_text(WIDTH - _RIGHT + 36, y, group))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _rated(row: Row) -> bool:
    """Whether multiply-adds describe the row's work."""
    return row.modelled is not None and row.modelled.macs_per_cycle is not None


def _group(row: Row) -> str:
    return f"{row.operation} {row.type}"


def _x(value: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * math.log(value / _X[0]) / math.log(_X[1] / _X[0])


def _y(value: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * math.log(value / _Y[0]) / math.log(_Y[1] / _Y[0])


def _axes() -> Iterable[str]:
    for value in _powers(_X):
        yield _line(_x(value), _y(_Y[0]), _x(value), _y(_Y[1]), "#e4e4e4")
        yield _text(_x(value), _y(_Y[0]) + 18, f"{value:g}", anchor="middle")
    for value in _powers(_Y):
        yield _line(_x(_X[0]), _y(value), _x(_X[1]), _y(value), "#e4e4e4")
        yield _text(_LEFT - 8, _y(value) + 4, f"{value:g}", anchor="end")
    yield _text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 16, "multiply-adds per byte moved", anchor="middle")
    yield _text(_LEFT - 50, _TOP - 4, "multiply-adds per cycle and core")


def _roofs() -> Iterable[str]:
    top = float(MACS_PER_CYCLE)
    for bandwidth in BANDWIDTHS_BYTES_PER_S:
        bytes_per_cycle = bandwidth / CORES / CLOCK_HZ
        ridge = top / bytes_per_cycle
        start = max(_X[0], _Y[0] / bytes_per_cycle)
        yield _line(_x(start), _y(start * bytes_per_cycle), _x(min(ridge, _X[1])), _y(top), "#666")
        yield _text(_x(start * 1.4), _y(start * 1.4 * bytes_per_cycle) - 8, f"{bandwidth / 1e9:.4g} GB/s, 8 cores")
    yield _line(_x(_X[0]), _y(top), _x(_X[1]), _y(top), "#666")
    yield _text(_x(_X[0]) + 6, _y(top) - 6, "FP32 peak")


def _dot(row: Row, colour: str) -> str:
    assert row.modelled is not None and row.modelled.macs_per_cycle is not None
    x = min(max(row.macs / row.moved_bytes, _X[0]), _X[1])
    y = min(max(row.modelled.macs_per_cycle, _Y[0]), _Y[1])
    title = escape(f"{row.model} {row.layer} {row.case}: {row.modelled.macs_per_cycle:.2f}")
    place = f'cx="{_x(x):.1f}" cy="{_y(y):.1f}" r="4"'
    return f'<circle {place} fill="{colour}" fill-opacity="0.6"><title>{title}</title></circle>'


def _powers(limits: tuple[float, float]) -> list[float]:
    first, last = (round(math.log2(limit)) for limit in limits)
    return [2.0**n for n in range(first, last + 1)]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
