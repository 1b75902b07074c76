#!/bin/sh
# Compiles the player over the Java face when it is older than its source, and plays a script.
set -eu
here="$NEXTHOP_ROOT/tests/conformance/runners/java"
java="$NEXTHOP_ROOT/java/target"
classes="$NEXTHOP_TARGET/nexthop-conformance-java"
path="$java/classes:$java/native-resources"
if [ ! "$classes/Runner.class" -nt "$here/Runner.java" ] || [ "$java/classes/io/nexthop/Engine.class" -nt "$classes/Runner.class" ]; then
  mkdir -p "$classes"
  javac -nowarn -d "$classes" -cp "$path" "$here/Runner.java" >&2
fi
exec java -cp "$classes:$path" Runner
