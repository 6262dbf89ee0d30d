#!/usr/bin/env bash
# attention_cues says what is so, draws it, and refuses bad usage. Arguments: the build folder.
source "$(dirname "$0")/support/check.sh" "$1/examples/attention_cues" || exit 1

"$program" --quick --out "$folder/out" > "$folder/text" 2> "$folder/errors" || fail "exit $?: $(cat "$folder/errors")"

# Of five things: what has the most weight in each state of mind, and that a row is whole.
awk '/^  (nothing|something)/ { n = NF; total = 0; best = n - 4
       for (i = n - 4; i <= n; ++i) { total += $i; if ($i + 0 > $best + 0) best = i }
       if (total < 0.997 || total > 1.003 || best - (n - 4) != rows++) bad = 1 }
     END { exit bad || rows != 3 }' "$folder/text" || fail "the table of cues"

# The lookup of 7 among 0 ... 9 with squares as values: the mean 28.5, e^3 between, and 49.
awk '$1 == 0 && NF == 3 && $3 == 28.5 { ++ok }
     $1 == 3 && NF == 3 { w = exp(3) / (exp(3) + 9); a = w * 49 + (1 - w) * (285 - 49) / 9
       if (($2 - w) ^ 2 < 1e-10 && ($3 - a) ^ 2 < 1e-6) ++ok }
     $1 == 20 && NF == 3 && $3 == 49 { ++ok }
     END { exit ok != 3 }' "$folder/text" || fail "the table of the lookup"

# Entropies fall from log 30 to 0, and are the logarithms of the keys that count.
awk '/keys that count/ { on = 1; next }
     /^The widest/ { on = 0 }
     on { if (rows++ && $2 >= last) bad = 1
          if (rows == 1 && ($2 - log(30)) ^ 2 > 1e-6) bad = 1
          if (($3 - exp($2)) ^ 2 > 1e-4) bad = 1
          last = $2 }
     END { exit bad || rows != 6 || last < 0 || last > 1e-4 }' "$folder/text" || fail "the table of widths"

drawn cues_ things lookup widths curves sweep

# Without gnuplot the pictures' numbers are written. The same seed gives the same numbers, another seed others; what is
# said is so for every seed, or the program would exit 1.
GNUPLOT=none "$program" --quick --out "$folder/plain" > "$folder/plain_text" 2>&1 || fail "without gnuplot: exit $?"
[[ $(find "$folder/plain" -name '*.csv' | wc -l) == 5 ]] || fail "without gnuplot: $(ls "$folder/plain")"
numbers() { grep -v "$folder" "$1"; }
for seed in 0 1 2 3 4; do
  GNUPLOT=none "$program" --quick --seed $seed --out "$folder/plain" > "$folder/other" 2> "$folder/errors" ||
    fail "--seed $seed: exit $? and $(cat "$folder/errors")"
  if cmp -s <(numbers "$folder/text") <(numbers "$folder/other"); then same=yes; else same=no; fi
  [[ $same == $([[ $seed == 0 ]] && echo yes || echo no) ]] || fail "--seed $seed: the same as seed 0: $same"
done
GNUPLOT=none "$program" --out "$folder/plain" > "$folder/other" 2>&1 || fail "without --quick: exit $?"
grep -q '^50 queries' "$folder/other" || fail "without --quick: not 50 queries"

helps --seed
refuses '--nonsense' '--seed -1' '--seed x' '--out /dev/null/x' 'word'
exit $failures
