"""`simbridge bench`: speed, each figure beside what is asked of it, or a rival, in one run."""
