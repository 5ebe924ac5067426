"""Images: recipes, building, importing, verifying."""
