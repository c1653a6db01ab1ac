#!/usr/bin/env bash
# Creates two databases with one owner each, and a read-only role for the pages, on a new volume.
# Sourced or run by the image; psql is configured by its environment. Passwords are never passed as arguments.
set -euo pipefail
airflow=$(cat "${AIRFLOW_DB_PASSWORD_FILE:?}") metrics=$(cat "${METRICS_DB_PASSWORD_FILE:?}")
reader=$(cat "${METRICS_READER_PASSWORD_FILE:?}")
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres <<SQL
CREATE ROLE airflow LOGIN PASSWORD '$airflow';
CREATE ROLE tipcflow LOGIN PASSWORD '$metrics';
CREATE ROLE tipcflow_reader LOGIN PASSWORD '$reader';
CREATE DATABASE airflow OWNER airflow;
CREATE DATABASE tipcflow OWNER tipcflow;
REVOKE CONNECT ON DATABASE airflow, tipcflow FROM PUBLIC;
GRANT CONNECT ON DATABASE tipcflow TO tipcflow_reader;
\connect tipcflow
ALTER DEFAULT PRIVILEGES FOR ROLE tipcflow GRANT SELECT ON TABLES TO tipcflow_reader;
ALTER ROLE tipcflow_reader SET default_transaction_read_only = on;
SQL
