#!/bin/sh
# Builds the Rust archive, the JNI library over it, and the jar that holds both.
#   build.sh [native|classes]   native: only the library; classes: also compile, without packing the jar
# CARGO_PROFILE=dev builds the archive without optimisation; CC, JAVA_HOME and CARGO_TARGET_DIR are respected.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
what=${1:-package}
profile=${CARGO_PROFILE:-release}
target=${CARGO_TARGET_DIR:-$root/target}
case $profile in dev) folder=debug ;; *) folder=$profile ;; esac

(cd "$root" && cargo build --quiet --locked --package nexthop-ffi --lib --profile "$profile")

home=${JAVA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")}
case $(uname -s) in
  Darwin) os=macos md=darwin name=libnexthop_jni.dylib link="-dynamiclib" ;;
  *) os=linux md=linux name=libnexthop_jni.so
     link="-shared -Wl,-z,defs,-z,relro,-z,now,--gc-sections,--exclude-libs,ALL -Wl,--version-script=$here/src/main/native/exports.map" ;;
esac
case $(uname -m) in x86_64 | amd64) arch=x86_64 ;; aarch64 | arm64) arch=aarch64 ;; *) arch=$(uname -m) ;; esac
libc=; [ "$os" = linux ] && [ -e "/lib/ld-musl-$arch.so.1" ] && libc=-musl
out=$here/target/native-resources/io/nexthop/native/$os-$arch$libc
mkdir -p "$out"
# shellcheck disable=SC2086 # words on purpose
${CC:-cc} -std=c11 -O2 -fPIC -fvisibility=hidden -Wall -Wextra -Werror $link \
  -I"$home/include" -I"$home/include/$md" -I"$root/include" \
  "$here/src/main/native/nexthop_jni.c" "$target/$folder/libnexthop.a" \
  -lpthread -ldl -lm -o "$out/$name.new"
strip -x "$out/$name.new" 2>/dev/null || true
mv "$out/$name.new" "$out/$name"

case $what in
  native) ;;
  classes) mvn -B -q -f "$here/pom.xml" test-compile ;;
  *) mvn -B -q -f "$here/pom.xml" package -DskipTests ;;
esac
