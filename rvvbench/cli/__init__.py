"""Typer commands: parse, call, render."""
