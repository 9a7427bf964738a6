#!/bin/sh
# The Go tests. `go test` hides what passing packages print, skips included: so all of it goes to a file, and
# results and SKIPPED lines from there to the terminal. Where something failed, the rest follows.
set -u
cd "$(dirname "$0")/.."
mkdir -p .cache
log=.cache/test-go.log
go test -v -timeout 30m "$@" ./... >"$log" 2>&1
rc=$?
grep -E '^(SKIPPED|ok |FAIL|--- FAIL|panic:)' "$log"
if [ $rc -ne 0 ]; then
  echo "--- what was printed, without passing tests (all of it: $log)"
  grep -vE '^(=== |PASS$| *--- PASS|ok |\?)' "$log" | tail -n 400
fi
exit $rc
