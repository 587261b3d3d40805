"""`simbridge studio`: a page in which a goal is dragged and every setting shows its effect."""
