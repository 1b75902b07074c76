#!/usr/bin/env bash
# Installs the development packages and builds the addon. PROFILE=dev builds faster, for tests.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
cd "$here"
npm ci --no-audit --no-fund
profile="${PROFILE:-release}"
cargo build --manifest-path ../Cargo.toml --package nexthop-node --profile "$profile"
target="$(cargo metadata --manifest-path ../Cargo.toml --no-deps --format-version 1 |
  node -p 'JSON.parse(require("fs").readFileSync(0, "utf8")).target_directory')"
folder="$profile"
[ "$profile" = dev ] && folder=debug
for file in libnexthop_node.so libnexthop_node.dylib nexthop_node.dll; do
  if [ -e "$target/$folder/$file" ]; then
    # A new file, not new content: a process that has the old one mapped keeps it.
    cp "$target/$folder/$file" nexthop.node.new
    mv nexthop.node.new nexthop.node
    exit 0
  fi
done
echo "build.sh: no addon in $target/$folder" >&2
exit 1
