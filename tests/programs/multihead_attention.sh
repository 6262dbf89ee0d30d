#!/usr/bin/env bash
# multihead_attention learns what it says, draws it, and refuses bad usage. Arguments: the build folder.
source "$(dirname "$0")/support/check.sh" "$1/examples/multihead_attention" || exit 1

"$program" --quick --out "$folder/out" > "$folder/text" 2> "$folder/errors" || fail "exit $?: $(cat "$folder/errors")"
# From the printed table: attention right in 90 % or more of 8 pairs, average pooling within 5 points of 12.5 %.
awk '/the size of training/ { found = 1; if ($3 < 90 || $5 < 7.5 || $5 > 17.5 || $7 != "12.50") exit 1 }
  END { exit !found }' "$folder/text" || fail "accuracy: $(grep 'the size of training' "$folder/text")"
[[ $(grep -c '^  head [1-4]: 0\.[5-9]' "$folder/text") == 4 ]] || fail "heads: $(grep '^  head' "$folder/text")"
awk -F, 'NR > 1 { last = $2; average = $3 } END { exit !(NR == 301 && last < 0.1 && average > 2) }' \
  "$folder/out/multihead_losses.csv" || fail "losses: $(tail -1 "$folder/out/multihead_losses.csv")"

drawn multihead_ heads training

# The same seed gives the same numbers; another one, or another net, others.
"$program" --quick --out "$folder/out" > "$folder/again" 2> /dev/null
cmp -s "$folder/text" "$folder/again" || fail "the same seed gave something else"
"$program" --quick --seed 7 --pairs 5 --heads 2 --out "$folder/out" > "$folder/other" 2>&1 ||
  fail "--seed 7 --pairs 5 --heads 2: exit $?"
grep -q '5        4000.*20.00 %   the size of training' "$folder/other" || fail "--pairs 5 was not used"

# Without training, attention answers by chance: what the program says is not so then.
"$program" --steps 10 --out "$folder/out" > "$folder/other" 2> "$folder/errors"
status=$?
[[ $status == 1 && $(cat "$folder/errors") == \
  'multihead_attention: it is not so that attention is right in at least 99 % of 8 pairs' ]] ||
  fail "--steps 10: exit $status and $(cat "$folder/errors")"

helps --heads
refuses '--pairs 3' '--pairs 33' '--pairs x' '--pairs 010' '--heads 3' '--heads 010' '--steps 0' '--nonsense' '--seed -1' '--out /dev/null/x'
exit $failures
