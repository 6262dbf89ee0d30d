#!/usr/bin/env bash
# positional_encoding says what is so, draws it, and refuses bad usage. Arguments: the build folder.
source "$(dirname "$0")/support/check.sh" "$1/examples/positional_encoding" || exit 1

"$program" --quick --out "$folder/out" > "$folder/text" 2> "$folder/errors" || fail "exit $?: $(cat "$folder/errors")"
for text in 'integers    NO              yes            yes' '\[0,1\]       yes             NO             yes' \
  'binary      yes             yes            NO' 'sinusoids   yes             yes            yes' \
  '356 pairs collide; the nearest are 355 and 399, 0.0675 apart' \
  'smallest width without a collision among 400 positions is 4'; do
  grep -q "$text" "$folder/text" || fail "not printed: $text"
done

drawn positional_ ideas heat_map columns products collisions

# Every colliding pair, 44 positions apart.
awk -F, 'NR > 1 && ($2 - $1 != 44 || $3 >= 0.1) { bad = 1 } END { exit bad || NR != 357 }' \
  "$folder/out/positional_pairs.csv" || fail "the 356 pairs are not in positional_pairs.csv"

# Without gnuplot the pictures' numbers are written.
GNUPLOT=none "$program" --quick --out "$folder/plain" > "$folder/plain_text" 2>&1 || fail "without gnuplot: exit $?"
[[ $(find "$folder/plain" -name '*.csv' | wc -l) == 6 ]] || fail "without gnuplot: $(ls "$folder/plain")"

"$program" --quick --seed 7 --length 1000 --out "$folder/out" > "$folder/other" 2>&1 || fail "--seed 7: exit $?"
grep -q 'among 1000 positions is' "$folder/other" || fail "--length 1000 was not used"
cmp -s "$folder/text" "$folder/other" && fail "--seed and --length change nothing"

# Rows 3 wide don't come nearer than 0.06: what the program says is not so then.
"$program" --quick --tolerance 0.06 --out "$folder/out" > "$folder/other" 2> "$folder/errors"
status=$?
[[ $status == 1 && $(cat "$folder/errors") == 'positional_encoding: it is not so that rows 3 wide collide' ]] ||
  fail "--tolerance 0.06: exit $status and $(cat "$folder/errors")"

helps --length
refuses '--length 1' '--length x' '--length 010' '--length 20001' '--tolerance 0' '--tolerance nan' \
  '--nonsense' '--seed -1' '--out /dev/null/x'
exit $failures
