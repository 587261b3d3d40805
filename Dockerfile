# simbridge in a container, by the two commands of the README:
#
#     docker build --tag simbridge .          # make run: the environment, and a first run
#     docker run --rm simbridge               # make test
#     docker run --rm -it simbridge bash      # a shell in the checkout
#
# This file has not been built by those who wrote it: they had no docker engine.

# What the commands need; the development container (.devcontainer) ends here.
FROM docker.io/library/python:3.12-bookworm AS base
# chromium is for the tests of the pages, which are skipped without it.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends chromium git make \
    && rm -rf /var/lib/apt/lists/*

FROM base AS simbridge
WORKDIR /simbridge
COPY . .
RUN make run
ENV PATH="/simbridge/.venv/bin:$PATH"
CMD ["make", "test"]
