#!/bin/sh
# Makes the database and the role that Larimar uses: the owner of one database, and nothing else in the cluster.
#
# The image of PostgreSQL runs this once, when it makes a new cluster. It runs as well against any cluster where the
# variables PGHOST, PGUSER and so on reach a superuser. The role's password is in the file that
# LARIMAR_DATABASE_PASSWORD_FILE names.
set -eu
file="${LARIMAR_DATABASE_PASSWORD_FILE:-/run/secrets/database_password}"
[ -s "$file" ] || { echo "create-role.sh: no password in $file" >&2; exit 1; }
export file

# psql reads the file itself and quotes what is in it: the password is in no list of processes. The server is told not
# to log these statements, since its log would keep the password.
psql --set=ON_ERROR_STOP=1 --no-psqlrc --quiet --username="${POSTGRES_USER:-${PGUSER:-postgres}}" --dbname=postgres <<'SQL'
\set password `cat "$file"`
SET log_statement = 'none';
SET log_min_error_statement = 'panic';
CREATE ROLE larimar LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD :'password';
CREATE DATABASE larimar OWNER larimar TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C';
REVOKE ALL ON DATABASE larimar FROM PUBLIC;
SQL
