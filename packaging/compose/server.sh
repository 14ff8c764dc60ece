#!/usr/bin/env bash
# Creates the extension and the role of the exporter when the image initializes the database of packaging/compose.yaml.
set -euo pipefail

psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username=postgres --dbname=shop --set=password="$POSTGRES_PASSWORD" <<'SQL'
CREATE EXTENSION snowflake_pg;
CREATE ROLE prometheus LOGIN PASSWORD :'password' IN ROLE pg_monitor;
SQL
