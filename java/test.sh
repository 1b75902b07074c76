#!/bin/sh
# Builds what is missing and runs the tests; arguments go to Maven (-Dtest=AttemptTest).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
"$here/build.sh" native
exec mvn -B -f "$here/pom.xml" test "$@"
