# PostgreSQL's official image with snowflake_pg. To run it, name the library and the worker ID: see docs/installing.md.
ARG PG=17
ARG RUST=1.95

FROM rust:${RUST}-bookworm AS rust

FROM postgres:${PG}-bookworm AS build
ARG PG
ENV CARGO_HOME=/usr/local/cargo RUSTUP_HOME=/usr/local/rustup
COPY --from=rust ${CARGO_HOME} ${CARGO_HOME}
COPY --from=rust ${RUSTUP_HOME} ${RUSTUP_HOME}
WORKDIR /src
# Debian's archive has only one version of each package, so no version can be pinned.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates make \
    && rm -rf /var/lib/apt/lists/*
COPY . .
RUN make package PG="${PG}"

FROM postgres:${PG}-bookworm
ARG PG
RUN --mount=type=bind,from=build,source=/src/target/packages,target=/packages \
    dpkg --install /packages/postgresql-"${PG}"-snowflake-pg_*.deb
