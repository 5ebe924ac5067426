"""The code that runs inside the container."""
