"""Judges any log: what an arm did, why it deviated, and whether the prediction holds."""
