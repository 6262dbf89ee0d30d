#!/usr/bin/env bash
# Training on several ranks is training on one: the same losses for any number, and no rank is left waiting by a fault.
# Arguments: the build folder and the source folder.
source "$(dirname "$0")/support/check.sh" "$1/docs/programs/data_parallel" || exit 1
mpirun=$2/tests/programs/support/mpirun.sh
on() { timeout 100 bash "$mpirun" -n "$@" 2> "$folder/errors"; }  # on RANKS PROGRAM ARGUMENTS...

# near FILE FILE: the same texts, and numbers that differ by 1e-9 of their size at most.
near() {
  paste -d '\n' "$1" "$2" | awk -F '[ ,]+' 'NR % 2 { split($0, a, "[ ,]+"); n = NF; next }
    { if (NF != n) exit bad = 1
      for (i = 1; i <= n; ++i) {
        d = $i - a[i]; size = $i < 0 ? -$i : $i
        if ((d < 0 ? -d : d) > 1e-9 * size || (size == 0 && $i != a[i])) exit bad = 1
      } }
    END { exit bad || NR < 4 || NR % 2 }'
}

"$program" > "$folder/alone" || fail "data_parallel alone: exit $?"
for ranks in 1 2 3 4; do
  on $ranks "$program" > "$folder/ranks" || fail "data_parallel on $ranks: exit $?, $(cat "$folder/errors")"
  grep -q "^ranks: $ranks," "$folder/ranks" || fail "not on $ranks ranks: $(cat "$folder/ranks")"
  near <(grep loss "$folder/alone") <(grep loss "$folder/ranks") || fail "on $ranks ranks: $(cat "$folder/ranks")"
done
near "$folder/alone" <(sed 's/loss 0.0/loss 0.000000001/' "$folder/alone") && fail "numbers that differ are not seen"
exit $failures
