#!/bin/sh
# Compiles and runs the C and C++ tests and examples against the library. `--quick` leaves out the instrumented runs
# (address and undefined behaviour sanitizers, valgrind) and the large documents. CC and CXX name the compilers.
set -eu
cd "$(dirname "$0")/.."
quick=${1:-}
target=$(cargo metadata --format-version 1 --no-deps --locked | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
cargo build --quiet --locked -p nexthop-ffi
ffi/generate-header.sh --check
out=$target/ffi-tests
mkdir -p "$out"
ln -sf ../debug/libnexthop.so "$out/libnexthop.so.1"
warnings="-Wall -Wextra -pedantic -Werror"
c="${CC:-cc} -std=c11 -g -O1 $warnings -Iinclude -Iffi/tests/c"
cxx="${CXX:-c++} -std=c++17 -g -O1 $warnings -Iinclude"
shared="-L$target/debug -lnexthop -lpthread -Wl,-rpath,$out"
static="$target/debug/libnexthop.a -lpthread -ldl -lm"

# compile OUTPUT SOURCE FLAGS...
compile() {
  output=$1 source=$2
  shift 2
  case $source in
  *.c) $c "$source" -o "$output" "$@" ;;
  *) $cxx "$source" -o "$output" "$@" ;;
  esac
}

# says NAME EXPECTED
says() {
  found=$("$out/$1")
  if [ "$found" != "$2" ]; then
    printf '%s printed\n%s\nnot\n%s\n' "$1" "$found" "$2" >&2
    exit 1
  fi
  echo "$1: ok"
}

# The header alone, twice, in both languages.
for language in c c++; do
  standard=c11
  [ $language = c ] || standard=c++17
  printf '#include "nexthop.h"\n#include "nexthop.h"\nint main(void) { return 0; }\n' |
    ${CC:-cc} -x $language -std=$standard $warnings -Iinclude -fsyntax-only -
done
echo "header: ok"

if command -v readelf >/dev/null; then
  readelf -d "$target/debug/libnexthop.so" | grep -q 'SONAME.*\[libnexthop\.so\.1\]'
  echo "soname: ok"
fi

for test in handles arguments threads stress fork documents beyond checks; do
  # shellcheck disable=SC2086
  compile "$out/$test" ffi/tests/c/$test.c $shared
done
# shellcheck disable=SC2086
compile "$out/owners" ffi/tests/c/owners.cpp $shared
for test in handles arguments threads stress fork beyond checks owners; do "$out/$test"; done
if [ "$quick" = --quick ]; then "$out/documents" --small; else "$out/documents"; fi

for example in script retry event_loop event_log checks; do
  # shellcheck disable=SC2086
  compile "$out/$example" examples/c/$example.c $shared
done
# shellcheck disable=SC2086
compile "$out/retry_cpp" examples/cpp/retry.cpp $shared
# Needs the lab to run; here it only has to compile.
# shellcheck disable=SC2086
compile "$out/experiment" examples/c/experiment.c $shared
says script 'attempt 1: 10.0.2.1:80
attempt 2: 10.0.3.1:80
attempt 3: 503 no_healthy_upstream'
says checks 'orders of 127.0.0.1: /failed_active_hc
2 checks, 2 failed'
says event_loop 'one: send attempt 1
two: wait for queue
three: wait for queue
four: answer 503 overflow
two: client gone
one: answer 200
three: send attempt 1
three: answer 200'
says event_log 'EJECT 10.0.0.1:80
UNEJECT 10.0.0.1:80'
# The back-off is drawn, so that it may be 0: no wait.
for loop in retry retry_cpp; do
  "$out/$loop" | grep -v '^wait for backoff$' | sed 's/ within .* ms//' | tr '\n' ';' >"$out/$loop.out"
done
grep -qx 'GET /pay from 10.0.0.1:80: -1;GET /pay from 10.0.0.2:80: 503;GET /pay from 10.0.0.3:80: 200;answer: 200;' "$out/retry.out"
grep -qx 'GET /pay from 10.0.0.1:80: 503;GET /pay from 10.0.0.2:80: 503;GET /pay from 10.0.0.3:80: 200;answer: 200;' "$out/retry_cpp.out"
echo "retry: ok"

[ "$quick" != --quick ] || exit 0

# The archive under sanitizers: they see what C passes in and gets back.
for test in handles arguments documents checks; do
  # shellcheck disable=SC2086
  compile "$out/$test.sanitized" ffi/tests/c/$test.c -fsanitize=address,undefined -fno-sanitize-recover=all $static
done
# shellcheck disable=SC2086
compile "$out/owners.sanitized" ffi/tests/c/owners.cpp -fsanitize=address,undefined -fno-sanitize-recover=all $static
for test in handles arguments checks owners; do "$out/$test.sanitized"; done
"$out/documents.sanitized" --small

if command -v valgrind >/dev/null; then
  for test in arguments owners; do
    valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite "$out/$test"
  done
  valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite "$out/documents" --small
fi
