"""Speed of simbridge, for its developers.

Each figure is compared with a requirement or a baseline of the same run.

`make bench` runs what takes a minute; `python -m benchmarks PART ...` the parts that are named. A
user's question, how well a computer keeps time, is answered by `simbridge bench`.
"""
