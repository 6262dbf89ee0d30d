#!/usr/bin/env bash
# The parity runner finds what differs, and says which file it can't read.
source "$(dirname "$0")/support/check.sh" "$1/tests/parity" || exit 1

# expect CODE TEXT LINE...: the file of those lines makes the runner exit with CODE and print TEXT.
expect() {
  local code=$1 text=$2 got status
  shift 2
  printf '%s\n' "$@" > "$folder/cases.jsonl"
  got=$("$program" "$folder/cases.jsonl" 2>&1)
  status=$?
  if [[ $status != "$code" || $got != *"$text"* ]]; then
    printf 'expected exit %s and "%s", got exit %s and "%s"\n' "$code" "$text" "$status" "$got"
    failures=1
  fi
}

array() { printf '{"dtype":"f64","shape":%s,"data":%s}' "$1" "$2"; }
one() { array '[1]' "[$1]"; }
# square OUTPUT GRAD SECOND: the case of 3 squared, with dy = 2 and direction 5; right is 9, 12, 20
square() {
  printf '{"op":"square","id":"s","attrs":{},"inputs":[%s],"output":%s,"grad_output":%s,"grads":[%s],"directions":[%s],"second":[%s]}' \
    "$(one 3)" "$(one "$1")" "$(one 2)" "$(one "$2")" "$(one 5)" "$(one "$3")"
}
# op NAME ATTRIBUTES: the case of an op of [-inf, NaN], whose output stays as it is
op() {
  printf '{"op":"%s","id":"x","attrs":%s,"inputs":[%s],"output":%s}' "$1" "$2" "$(array '[2]' '["-inf","nan"]')" \
    "$(array '[2]' "${3:-[\"-inf\",\"nan\"]}")"
}
sum='{"axis":[0],"keepdim":false}'

expect 0 '1 passed, 0 failed' "$(square 9 12 20)"
expect 0 '2 passed, 0 failed' "$(square 9 12 20)" '' "$(square 9.000000001 12 20)"
expect 1 's: output at (0): expected 9.0000000' "$(square 9.0000001 12 20)"
expect 1 's: grads[0] at (0): expected 12.5, got 12' "$(square 9 12.5 20)"
expect 1 's: second[0] at (0): expected 21, got 20' "$(square 9 12 21)"
expect 1 '1 passed, 1 failed' "$(square 9 12 21)" "$(square 9 12 20)"
expect 1 'x: output at (0): expected inf, got -inf' "$(op reshape '{"shape":[2]}' '["inf","nan"]')"
expect 1 'x: output at (1): expected 1, got nan' "$(op reshape '{"shape":[2]}' '["-inf",1]')"
expect 0 '1 passed, 0 failed' "$(op reshape '{"shape":[2]}')"
expect 1 'x: output shape: expected (2), got ()' "$(op sum "$sum")"
expect 1 'unknown op; got nonsense' "$(op nonsense '{}')"
expect 1 'unknown attribute; got axes' "$(op neg '{"axes":1}')"
expect 1 'missing attribute; got keepdim' "$(op sum '{"axis":[0]}')"
expect 2 'line 2: not a JSON object' "$(square 9 12 20)" '{"op":'
expect 2 'line 1: not a JSON object' '[]'

"$program" "$folder/missing.jsonl" > "$folder/out" 2>&1
[[ $? == 2 ]] && grep -q "can't read" "$folder/out" || fail "a missing file was accepted"
"$program" "$folder" > "$folder/out" 2>&1
[[ $? == 2 ]] || fail "a folder was accepted"
"$program" > "$folder/out" 2>&1
[[ $? == 2 ]] || fail "no file was accepted"
"$program" --help > "$folder/out" 2>&1 || fail "--help failed"
exit $failures
