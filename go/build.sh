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
# Go does not watch what its linker reads: a source that changes with it makes it link, and test, again.
printf 'package nexthop\n\n// nativeStamp is that of the archive and the header.\nvar nativeStamp = "%s"\n' \
  "$(cksum go/internal/native/nexthop.h go/internal/native/libnexthop.a | cut -d ' ' -f 1 | tr '\n' '-')" >go/stamp.go
