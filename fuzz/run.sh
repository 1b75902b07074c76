#!/bin/sh
# fuzz/run.sh MINUTES [TARGET...]: fuzzes each target so long and prints executions and coverage. What was found new stays in
# target/fuzz; the committed corpora are only read.
set -eu
cd "$(dirname "$0")/.."
minutes=$1
shift
[ $# -gt 0 ] || set -- documents headers lifecycle abi
for target; do
  found=target/fuzz/$target
  mkdir -p "$found"
  nice -n 19 cargo +nightly fuzz run --fuzz-dir fuzz "$target" "$found" "fuzz/corpus/$target" -- \
    -max_total_time=$((minutes * 60)) -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 -verbosity=0
done
