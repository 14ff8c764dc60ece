# PostgreSQL's official image with snowflake_pg, and, as the target "extension", an image that contains only the extension. To run
# the first, name the library and the worker ID: see docs/installing.md. To mount the second, see docs/kubernetes.md.
ARG PG=17
ARG RUST=1.95
# The version of Cargo.toml, for the labels.
ARG VERSION=0.2.0

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

FROM build AS archive
RUN mkdir /archive && tar -xzf target/packages/snowflake_pg-*.tar.gz -C /archive --strip-components=1

FROM scratch AS extension
ARG PG
ARG VERSION
LABEL org.opencontainers.image.title="snowflake_pg" \
    org.opencontainers.image.description="The extension snowflake_pg ${VERSION} for PostgreSQL ${PG}, to mount into a container" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.licenses="PostgreSQL AND MIT AND Unicode-3.0 AND Zlib" \
    org.opencontainers.image.source="https://snowflake-pg.invalid/snowflake_pg" \
    org.opencontainers.image.base.name="scratch" \
    io.cloudnativepg.image.base.name="postgres:${PG}-bookworm" \
    io.cloudnativepg.image.base.pgmajor="${PG}" \
    io.cloudnativepg.image.base.os="bookworm" \
    io.cloudnativepg.image.sql.version="${VERSION}"
COPY --from=archive /archive/LICENSE /licenses/snowflake_pg/LICENSE
COPY --from=archive /archive/share/snowflake_pg/NOTICES /licenses/snowflake_pg/NOTICES
COPY --from=archive /archive/lib /lib
COPY --from=archive /archive/share /share

FROM postgres:${PG}-bookworm AS server
ARG PG
ARG VERSION
LABEL org.opencontainers.image.title="PostgreSQL ${PG} with snowflake_pg" \
    org.opencontainers.image.description="PostgreSQL's official image with snowflake_pg ${VERSION}" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.licenses="PostgreSQL AND MIT AND Unicode-3.0 AND Zlib" \
    org.opencontainers.image.source="https://snowflake-pg.invalid/snowflake_pg" \
    org.opencontainers.image.base.name="postgres:${PG}-bookworm"
COPY --from=archive /archive/LICENSE /archive/share/snowflake_pg/NOTICES /licenses/snowflake_pg/
RUN --mount=type=bind,from=build,source=/src/target/packages,target=/packages \
    dpkg --install /packages/postgresql-"${PG}"-snowflake-pg_*.deb
