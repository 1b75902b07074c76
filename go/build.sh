#!/bin/sh
# Builds the archive and puts it, with the header, where the Go package looks for it. `--profile dev` and other
# arguments go to cargo.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- --release
target=$(cargo metadata --format-version 1 --no-deps --locked | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
cargo build --locked -p nexthop-ffi "$@"
case " $* " in
*" --release "*) profile=release ;;
*) profile=debug ;;
esac
# What debuggers read is most of the archive.
if [ "$profile" = release ] && command -v strip >/dev/null; then
  strip --strip-debug "$target/$profile/libnexthop.a"
fi
cp include/nexthop.h "$target/$profile/libnexthop.a" go/internal/native/
