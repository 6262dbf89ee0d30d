#!/usr/bin/env bash
# sequence_models measures what it says, draws it, and refuses bad usage. Arguments: the build folder.
source "$(dirname "$0")/support/check.sh" "$1/examples/sequence_models" || exit 1

# From the table of seconds: over the longest sequences attention's time grows faster than the others', over the widest
# ones slower. Columns: n, d, CNN, GRU, attention.
times_grow() {
  awk -F, 'NR > 1 { n[NR] = $1; d[NR] = $2; cnn[NR] = $3; gru[NR] = $4; attention[NR] = $5 }
    function grows(time, i) { return time[i] / time[i - 2] }
    END { exit !(NR == 13 && n[7] == 2048 && d[NR] == 1024 &&
      grows(attention, 7) > grows(cnn, 7) && grows(attention, 7) > grows(gru, 7) &&
      grows(attention, NR) < grows(cnn, NR) && grows(attention, NR) < grows(gru, NR)) }' "$folder/out/sequence_times.csv"
}

# The program looks at the times as well; others that use the machine may spoil some measurements, but not all.
measured=no
for _ in {1..8}; do
  "$program" --quick --out "$folder/out" > "$folder/text" 2> "$folder/errors" && times_grow && measured=yes && break
  sleep 2
done
[[ $measured == yes ]] || fail "8 times: $(cat "$folder/errors" "$folder/out/sequence_times.csv")"
for text in 'multiply-adds grow as  CNN n^1.00  GRU n^1.00  self-attention n^2.00' \
  'multiply-adds grow as  CNN d^2.00  GRU d^2.00  self-attention d^1.00' \
  'CNN  *65  *[0-9]*  *1  *32  *32$' 'GRU  *65  *[0-9]*  *65  *1  *65$' 'self-attention  *65  *[0-9]*  *1  *1  *1$'; do
  grep -q "$text" "$folder/text" || fail "not printed: $text"
done

drawn sequence_ growth

helps --seed
refuses '--nonsense' '--seed -1' 'word' '--out /dev/null/x'
exit $failures
