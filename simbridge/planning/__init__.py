"""From a scenario to a checked plan: options, limiter, check, approach and guard."""
