"""What is an answer of GSM8K: one number. Pure.

The data set's own answers end in "#### NUMBER". Of what a model says, the last number counts, in whatever words: it is
what evaluations of this task call the flexible match.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(
    r"""
    (?P<minus> (?<![\w)\].]) [-\u2212] (?=\$?[0-9.]) )?   # not the minus of "5-3"
    (?: \$ (?P<inner>[-\u2212])? )?
    (?P<whole> [0-9]{1,3}(?:,[0-9]{3})+(?![0-9]) | [0-9]+ | (?<![0-9])(?=\.[0-9]) )
    (?P<part> \.[0-9]+ )?
    """,
    re.VERBOSE,
)
_GOLD = "####"


def last_number(text: str) -> str | None:
    """The last number of a text in one form: "18" for "$18.00.", "-1234.5" for "-1,234.50"; None where it has none.

    A comma is part of a number only before groups of three digits, a point only before a digit.
    """
    found = None
    for found in _NUMBER.finditer(text):  # noqa: B007
        pass
    if found is None:
        return None
    whole = found["whole"].replace(",", "").lstrip("0") or "0"
    part = (found["part"] or "").rstrip("0").rstrip(".")
    negative = bool(found["minus"] or found["inner"]) and whole + part != "0"
    return f"{'-' if negative else ''}{whole}{part}"


def gold_number(answer: str) -> str:
    """The number behind the last "####" of a worked answer, in the same form. Raises ValueError where something else is
    there, or a number and more.
    """
    _, mark, said = answer.rpartition(_GOLD)
    number = last_number(said) if mark and _NUMBER.fullmatch(said.strip()) else None
    if number is None:
        raise ValueError(f'no number behind "{_GOLD}"')
    return number
