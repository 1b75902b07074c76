#!/bin/sh
# Builds the player over the C interface when it is older than its source, and plays a script.
set -eu
here="$NEXTHOP_ROOT/tests/conformance/runners/c"
program="$NEXTHOP_TARGET/nexthop-conformance-c"
library="$NEXTHOP_TARGET/libnexthop.a"
if [ ! "$program" -nt "$here/runner.c" ] || [ ! "$program" -nt "$library" ]; then
  ${CC:-cc} -std=gnu11 -O1 -g -Wall -Wextra -Werror -I"$NEXTHOP_ROOT/include" "$here/runner.c" "$library" \
    -lpthread -ldl -lm -o "$program.new" >&2
  mv "$program.new" "$program"
fi
exec "$program"
