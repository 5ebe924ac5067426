"""Manifests: models, loading, overlays, lock, identity."""
