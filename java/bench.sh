#!/bin/sh
# Measures choose + complete against an empty native call; one JSON line a case. ROUNDS (60), CALLS (50000).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
"$here/build.sh" classes >&2
home=${JAVA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")}
mkdir -p "$here/target/bench"
"$home/bin/javac" -d "$here/target/bench" -cp "$here/target/classes" "$here/bench/Bench.java"
# A young generation that fits in the cache, as the attempts that live there would in a server.
exec "$home/bin/java" -Xshare:auto -XX:+UseSerialGC -Xmn4m -cp "$here/target/bench:$here/target/classes" \
  io.nexthop.Bench "${ROUNDS:-60}" "${CALLS:-50000}"
