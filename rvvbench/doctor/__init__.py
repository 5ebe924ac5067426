"""What a machine can run, what it lacks, and the command that mends it."""
