"""The podman API service and the quirks of its host."""
