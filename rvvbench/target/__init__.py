"""Where a run happens: board, emulated or host."""
