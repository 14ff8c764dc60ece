#!/usr/bin/env bash
# Creates the registry and its roles when PostgreSQL's official image initializes the database of packaging/compose.yaml.
set -euo pipefail

psql() { command psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username=postgres --dbname=fleet "$@"; }

psql --single-transaction --file="$(echo /registry/snowflake_registry--[0-9].[0-9].[0-9].sql)"
psql --set=password="$POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE fleet LOGIN PASSWORD :'password';
CREATE ROLE prometheus LOGIN PASSWORD :'password' IN ROLE pg_monitor;
SELECT snowflake_registry.create_fleet('41:10:12');
SELECT snowflake_registry.grant_server('fleet');
SQL
