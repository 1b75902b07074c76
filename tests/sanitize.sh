#!/bin/sh
# What `make test` runs plain, under instruments: the stress tests of the core under ThreadSanitizer, and the Go package under
# AddressSanitizer. (The C and C++ tests always run under sanitizers and valgrind as well, the Go tests under the race
# detector.)
set -eu
cd "$(dirname "$0")/.."
nightly=${NIGHTLY:-nightly}
host=$(rustc -vV | sed -n 's/^host: //p')
if [ -d "$(rustc "+$nightly" --print sysroot 2>/dev/null)/lib/rustlib/src" ]; then
  target=$(cargo metadata --format-version 1 --no-deps --locked | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
  # The standard library is built with it, too: what it does to memory would look like races else.
  CARGO_TARGET_DIR=$target/tsan RUSTFLAGS=-Zsanitizer=thread \
    cargo "+$nightly" test -Zbuild-std --target "$host" --locked -p nexthop --test stress
else
  echo "thread sanitizer: SKIPPED, because there is no $nightly toolchain with rust-src" >&2
fi
(cd go && ../scripts/with go go test -asan .)
