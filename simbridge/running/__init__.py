"""Run the parts together: one run, repeated runs, what ends them."""
