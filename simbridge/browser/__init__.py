"""`simbridge studio`: a page in the browser in which the goal is dragged and every setting shows its effect."""
