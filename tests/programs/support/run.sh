# For tests that run many commands and end at the first fault. Sourced with the program's path; leaves one in an empty
# folder, $work.
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "FAILED: $*" >&2
  for file in stdout stderr; do
    if [ -s "$file" ]; then sed "s/^/  $file: /" "$file" | tail -5 >&2; fi
  done
  exit 1
}

# expect CODE COMMAND...: runs the command and checks its exit code; a failure is one line on stderr.
expect() {
  local expected=$1 code=0
  shift
  "$@" >stdout 2>stderr </dev/null || code=$?
  [ "$code" = "$expected" ] || fail "$*: exit code $code, expected $expected"
  if [ "$expected" != 0 ] && [ "$(wc -l <stderr)" != 1 ]; then fail "$*: not one line on stderr"; fi
}
