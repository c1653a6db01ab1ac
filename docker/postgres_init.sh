#!/usr/bin/env bash
# Creates three databases with one owner each, and the api-server's role, which reads; `tipcflow db grant`, run by the service
# init, lets it insert webhook deliveries, too. For a new volume, and for what an older volume lacks (docs/operations.md,
# "Upgrade"). Passwords become those of the files.
# Sourced or run by the image; psql is configured by its environment. Passwords are never passed as arguments.
set -euo pipefail
airflow=$(cat "${AIRFLOW_DB_PASSWORD_FILE:?}") metrics=$(cat "${METRICS_DB_PASSWORD_FILE:?}")
reader=$(cat "${METRICS_READER_PASSWORD_FILE:?}") results=$(cat "${RESULTS_DB_PASSWORD_FILE:?}")
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres <<SQL
SELECT format('CREATE ROLE %I LOGIN', made) FROM unnest(ARRAY['airflow', 'results', 'tipcflow', 'tipcflow_reader']) AS made
    WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = made) \gexec
SELECT format('CREATE DATABASE %1\$I OWNER %1\$I', made) FROM unnest(ARRAY['airflow', 'results', 'tipcflow']) AS made
    WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = made) \gexec
ALTER ROLE airflow PASSWORD '$airflow';
ALTER ROLE results PASSWORD '$results';
ALTER ROLE tipcflow PASSWORD '$metrics';
ALTER ROLE tipcflow_reader PASSWORD '$reader';
REVOKE CONNECT ON DATABASE airflow, results, tipcflow FROM PUBLIC;
GRANT CONNECT ON DATABASE tipcflow TO tipcflow_reader;
\connect tipcflow
ALTER DEFAULT PRIVILEGES FOR ROLE tipcflow GRANT SELECT ON TABLES TO tipcflow_reader;
ALTER ROLE tipcflow_reader SET default_transaction_read_only = on;
SQL
