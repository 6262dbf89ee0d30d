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

# The programs, in double: a batch of 7 on 1 to 4 ranks, and gone on with on another number of them.
here=$1/tests float=$1/examples
export GNUPLOT=/none
language_model=(--quick --batch 7 --quiet --length 0)
translate=(--quick --batch 7 --quiet)
for name in language_model translate; do
  declare -n settings=$name
  log=$name$([[ $name == translate ]] && echo _log).csv
  OMP_NUM_THREADS=1 "$here/$name" "${settings[@]}" --stop-at 50 --out "$folder/one" > /dev/null 2> "$folder/errors" ||
    fail "$name on one: $(cat "$folder/errors")"
  [[ $(wc -l < "$folder/one/$log") == 51 ]] || fail "$name: not 50 steps"
  for ranks in 1 2 3 4; do
    on $ranks "$here/$name" "${settings[@]}" --stop-at 50 --out "$folder/$ranks" > "$folder/said" ||
      fail "$name on $ranks: $(cat "$folder/errors")"
    [[ $(grep -c '^stopped' "$folder/said") == 1 ]] || fail "$name on $ranks: not only the first rank prints"
    near "$folder/one/$log" "$folder/$ranks/$log" || fail "$name on $ranks: other losses"
  done
  on 3 "$here/$name" "${settings[@]}" --stop-at 20 --out "$folder/again" > /dev/null &&
    on 2 "$here/$name" --resume "$folder/again/$name.safetensors" --quiet --stop-at 35 --out "$folder/again" > /dev/null &&
    "$here/$name" --resume "$folder/again/$name.safetensors" --quiet --stop-at 50 --out "$folder/again" > /dev/null ||
    fail "$name on 3, then 2, then one: $(cat "$folder/errors")"
  near "$folder/one/$log" "$folder/again/$log" || fail "$name on 3, then 2, then one: other losses"
done

# With dropout each rank draws its own numbers, and the same again.
for run in a b; do
  on 2 "$float/language_model" "${language_model[@]}" --dropout 0.1 --stop-at 9 --out "$folder/$run" > /dev/null ||
    fail "dropout: $(cat "$folder/errors")"
done
on 2 "$float/language_model" "${language_model[@]}" --dropout 0.1 --stop-at 4 --out "$folder/c" > /dev/null &&
  on 2 "$float/language_model" --resume "$folder/c/language_model.safetensors" --quiet --stop-at 9 --out "$folder/c" \
    > /dev/null || fail "dropout, gone on with: $(cat "$folder/errors")"
for run in b c; do
  cmp "$folder/a/language_model.csv" "$folder/$run/language_model.csv" || fail "dropout: other losses"
done

# ---- faults: the job ends within 10 s, with an exit code and one line of ours ----

ends() { # ends CODE TEXT ARGUMENTS...: of mpirun
  local code=$1 expected=$2 status begin=$SECONDS
  shift 2
  timeout 60 bash "$mpirun" "$@" > "$folder/said" 2> "$folder/errors"
  status=$?
  [[ $status == "$code" && $((SECONDS - begin)) -le 10 ]] || fail "$expected: exit $status after $((SECONDS - begin)) s"
  [[ $(grep -c -E '^(rank [0-9]: )?(language_model|translate): ' "$folder/errors") == 1 ]] &&
    grep -q -e "$expected" "$folder/errors" || fail "$expected: $(cat "$folder/errors")"
}
model=$float/language_model
few=(--quick --stop-at 3 --quiet --length 0)
ends 2 'no_such' -n 2 "$model" --no_such 1
ends 2 '^language_model: .*none/model' -n 3 "$model" --resume "$folder/none/model"
ends 2 '^language_model: cannot create the output folder' -n 2 "$model" "${few[@]}" --out /dev/null/none
ends 2 '^rank 1: language_model: .*/none' -n 1 "$model" "${few[@]}" --out "$folder/x" : \
  -n 1 "$model" "${few[@]}" --text "$folder/none" --out "$folder/x"
# What the ranks must have in common: the same work, settings and data.
tac "$2/examples/data/pride_and_prejudice.txt" > "$folder/other_text"
for i in {1..40}; do printf '%s\tone two %s\n' "$((i % 7))" "$((i % 5))"; done > "$folder/pairs"
tr 1 9 < "$folder/pairs" > "$folder/other_pairs"
differs() { # differs NAME OPTIONS: of the second rank
  local what=$1
  shift
  ends 2 "^language_model: $what: must be the same on all ranks; another one on rank 1" \
    -n 1 "$model" --quick --steps 9 --quiet --out "$folder/x" : -n 2 "$model" --quick --quiet --out "$folder/x" "$@"
}
differs 'the data' --steps 9 --text "$folder/other_text"
differs --seed --steps 9 --seed 5
differs --steps --steps 10
differs --stop-at --steps 9 --stop-at 4
differs --resume --resume "$folder/none"
ends 2 '^translate: the data: must be the same on all ranks; another one on rank 1' \
  -n 1 "$float/translate" --pairs "$folder/pairs" --steps 5 --out "$folder/x" : \
  -n 1 "$float/translate" --pairs "$folder/other_pairs" --steps 5 --out "$folder/x"

# A folder that only the first can see is no problem, nor is a checkpoint.
seen=$folder/seen/language_model.safetensors
on 1 "$model" "${few[@]}" --out "$folder/seen" : -n 1 "$model" "${few[@]}" --out /dev/null/none > /dev/null ||
  fail "a folder of the first: $(cat "$folder/errors")"
on 1 "$model" --resume "$seen" --stop-at 5 --out "$folder/seen" : \
  -n 1 "$model" --resume /dev/null/none --stop-at 5 --out /dev/null/none > "$folder/said" ||
  fail "a checkpoint of the first: $(cat "$folder/errors")"
grep -q '^going on after step 3' "$folder/said" || fail "a checkpoint of the first: $(cat "$folder/said")"

# A loss that is not finite: the first rank's one line.
with_bytes '\176' norm.weight "$seen" "$folder/huge"  # 8.4e37 each
ends 1 '^language_model: step 6: the loss on rank 0 is ' -n 2 "$model" --resume "$folder/huge" --quiet --out "$folder/x"

# A rank that is killed takes the others with it, and the checkpoint loads.
bash "$mpirun" -n 3 "$model" --quick --steps 100000 --save-every 1 --quiet --out "$folder/killed" > /dev/null 2>&1 &
job=$!
saved=$folder/killed/language_model.safetensors
wait_until test -e "$saved" || fail "no checkpoint came"
sleep 0.3
victim=$(pgrep -P $job -f "$model" | tail -1)
begin=$SECONDS
kill -KILL "$victim"
wait $job 2> /dev/null
status=$?
[[ $status != 0 && $((SECONDS - begin)) -le 10 ]] || fail "killed: exit $status after $((SECONDS - begin)) s"
step=$(($(step_of "$saved") + 5))
on 2 "$model" --resume "$saved" --quiet --stop-at $step --out "$folder/killed" > /dev/null ||
  fail "killed, and gone on with: $(cat "$folder/errors")"
exit $failures
