#!/usr/bin/env bash
# attention_scoring says what is so, draws it, and refuses bad usage. Arguments: the build folder.
source "$(dirname "$0")/support/check.sh" "$1/examples/attention_scoring" || exit 1

"$program" --quick --out "$folder/out" > "$folder/text" 2> "$folder/errors" || fail "exit $?: $(cat "$folder/errors")"

# Masked softmax: rows sum to 1; the zeros are where the lengths (2,3) and ((1,3),(2,4)) put them.
awk 'BEGIN { split("2 2 3 3 1 3 2 4", lengths) }
     /^additive/ { exit }
     /batch [0-9], query/ { ++row; total = 0
       for (i = 1; i <= 4; ++i) { w = $(NF - 4 + i); total += w; if ((w > 0) != (i <= lengths[row])) bad = 1 }
       if (total < 0.9995 || total > 1.0005) bad = 1 }
     END { exit bad || row != 8 }' "$folder/text" || fail "the tables of masked softmax"

# Both scoring functions average the first 2 and the first 6 values where the keys are equal.
[[ $(grep -c 'batch 0, query 0:   2.0000   3.0000   4.0000   5.0000' "$folder/text") == 2 ]] || fail "the average of 2 values"
[[ $(grep -c 'batch 1, query 0:  10.0000  11.0000  12.0000  13.0000' "$folder/text") == 2 ]] || fail "the average of 6 values"

# The variance grows as d and stays 1 when scaled; the gradient vanishes without the scaling and stays with it.
awk '/q.k\/sqrt/ { on = 1; next }
     /^Without/ { on = 0 }
     on { d = rows++ ? 4 * d : 1
          if ($1 != d || $2 / d < 0.6 || $2 / d > 1.5 || $3 < 0.6 || $3 > 1.5 || $5 < 0.1 || $5 > 0.25) bad = 1
          if (rows > 4 && $4 > last / 2) bad = 1
          last = $4 }
     END { exit bad || rows != 6 || last > 1e-3 }' "$folder/text" || fail "the table of scalings"

drawn scoring_ masked attention scaling

# Without gnuplot the pictures' numbers are written. The same seed gives the same numbers, another seed others; what is
# said is so for every seed, or the program would exit 1.
GNUPLOT=none "$program" --quick --out "$folder/plain" > "$folder/plain_text" 2>&1 || fail "without gnuplot: exit $?"
[[ $(find "$folder/plain" -name '*.csv' | wc -l) == 3 ]] || fail "without gnuplot: $(ls "$folder/plain")"
numbers() { grep -v "$folder" "$1"; }
for seed in 0 1 2 3 4; do
  GNUPLOT=none "$program" --quick --seed $seed --out "$folder/plain" > "$folder/other" 2> "$folder/errors" ||
    fail "--seed $seed: exit $? and $(cat "$folder/errors")"
  if cmp -s <(numbers "$folder/text") <(numbers "$folder/other"); then same=yes; else same=no; fi
  [[ $same == $([[ $seed == 0 ]] && echo yes || echo no) ]] || fail "--seed $seed: the same as seed 0: $same"
done
GNUPLOT=none "$program" --out "$folder/plain" > "$folder/other" 2>&1 || fail "without --quick: exit $?"
grep -q 'Variance of 10000 products' "$folder/other" || fail "without --quick: not 10000 products"

helps --seed
refuses '--nonsense' '--seed -1' '--seed x' '--out /dev/null/x' 'word'
exit $failures
