"""Records: schema, metrics, validity, store, render."""
