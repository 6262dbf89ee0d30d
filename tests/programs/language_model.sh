#!/usr/bin/env bash
# language_model learns and writes, goes on bit for bit after it was stopped or killed, and refuses bad input.
# Arguments: the build folder and the source folder.
source "$(dirname "$0")/support/check.sh" "$1/examples/language_model" || exit 1
export OMP_NUM_THREADS=1  # steps as small as these take longer on several
novel=$2/examples/data/pride_and_prejudice.txt
model=$folder/model.safetensors

"$program" --quick --out "$folder/out" --save "$model" > "$folder/text" 2> "$folder/errors" ||
  fail "exit $?: $(cat "$folder/errors")"
unigram=$(sed -n 's/^loss of .* each character is: \([0-9.]*\),.*/\1/p' "$folder/text")
reached=$(sed -n 's/^validation loss \([0-9.]*\),.*/\1/p' "$folder/text")
awk "BEGIN { exit !($reached > 1.5 && $reached < 0.8 * $unigram && $unigram < 3.3) }" ||
  fail "validation loss '$reached' against '$unigram' of who knows frequencies only"
awk -F, 'NR == 1 && $0 != "step,loss,learning_rate,validation_loss" { bad = 1 }
  NR > 1 && ($1 != NR - 1 || !($2 > 0) || !($3 > 0) || ($4 != "") != ($1 % 20 == 0)) { bad = 1 }
  END { exit bad || NR != 401 }' "$folder/out/language_model.csv" ||
  fail "log: $(tail -1 "$folder/out/language_model.csv")"
drawn language_model _losses

# What a finished model writes: the likeliest does not depend on the seed, what is drawn does.
export GNUPLOT=/none  # quicker
writes() {
  "$program" --load "$model" --out "$folder/again" --prompt 'Mr. ' --length 100 "$@" 2> "$folder/errors"
}
likeliest=$(writes --temperature 0)
[[ $likeliest == 'Mr. '* && ${#likeliest} -ge 100 && ! -e $folder/again ]] || fail "wrote: $likeliest $(cat "$folder/errors")"
[[ $(writes --top-k 1 --seed 7) == "$likeliest" ]] || fail "--top-k 1 is not the likeliest"
[[ $(writes --temperature 2 --seed 7) != $(writes --temperature 2 --seed 8) ]] ||
  fail "--seed does not change the sample"

# Six steps are three, and three more: the log and the whole checkpoint, dropout's random numbers included.
"$program" --quick --dropout 0.1 --stop-at 6 --out "$folder/six" > /dev/null 2> "$folder/errors" &&
  "$program" --quick --dropout 0.1 --stop-at 3 --out "$folder/three" > /dev/null 2>> "$folder/errors" &&
  "$program" --resume "$folder/three/language_model.safetensors" --stop-at 6 --out "$folder/three" > "$folder/other" \
    2>> "$folder/errors" || fail "--stop-at and --resume: $(cat "$folder/errors")"
grep -q '^going on after step 3 of' "$folder/other" || fail "not gone on with: $(cat "$folder/other")"
[[ $(wc -l < "$folder/six/language_model.csv") == 7 ]] || fail "not six steps: $(cat "$folder/six/language_model.csv")"
cmp "$folder/six/language_model.csv" "$folder/three/language_model.csv" || fail "resumed, the losses are others"
cmp "$folder/six/language_model.safetensors" "$folder/three/language_model.safetensors" ||
  fail "resumed, the checkpoint is another"
"$program" --quick --dropout 0.1 --stop-at 6 --seed 1 --out "$folder/seed" > /dev/null 2>&1
cmp -s "$folder/six/language_model.csv" "$folder/seed/language_model.csv" && fail "--seed changes nothing"

for _ in {1..60}; do echo 'Zażółć gęślą jaźń. Où est l’été ?'; done > "$folder/own"
survives_kills 20 language_model.csv --text "$folder/own" --layers 1 --width 16 --heads 2 --context 8 --batch 4 \
  --steps 10000 --dropout 0.1

# Ctrl-C: the step ends, and is saved.
"$program" --quick --save-every 1 --out "$folder/interrupted" > "$folder/other" 2> "$folder/errors" &
process=$!
wait_until test -e "$folder/interrupted/language_model.safetensors" || fail "no checkpoint came"
kill -INT $process
wait $process
status=$?
step=$(sed -n 's/^stopped after step \([0-9]*\) of.*/\1/p' "$folder/other")
[[ $status == 0 && $step -gt 0 ]] || fail "interrupted: exit $status, $(cat "$folder/other" "$folder/errors")"
"$program" --resume "$folder/interrupted/language_model.safetensors" --stop-at $((step + 1)) --out "$folder/interrupted" \
  > "$folder/other" 2>&1 || fail "interrupted, then resumed: exit $?"
grep -q "^going on after step $step of" "$folder/other" || fail "the step of the interrupt was not saved"
extra=$(find "$folder" -name '.*.tmp')
[[ -z $extra ]] || fail "left behind: $extra"

# A finished training that is saved elsewhere.
"$program" --resume "$model" --save "$folder/elsewhere" --out "$folder/again" > "$folder/other" 2>&1 ||
  fail "--resume of a finished one: exit $?, $(cat "$folder/other")"
cmp "$model" "$folder/elsewhere" || fail "a finished training is not saved elsewhere"

# A new training keeps the earlier one's model.
"$program" --quick --stop-at 2 --save "$folder/elsewhere" --out "$folder/again" > "$folder/other" 2>&1
cmp "$model" "$folder/elsewhere.previous" || fail "the earlier model is lost: $(cat "$folder/other")"

# A text of one's own, with other letters than English.
"$program" --quick --steps 60 --text "$folder/own" --prompt 'gęś' --out "$folder/own_out" > "$folder/other" \
  2> "$folder/errors" || fail "a text of one's own: exit $?, $(cat "$folder/errors")"
grep -q '^gęś' "$folder/other" || fail "a text of one's own: $(tail "$folder/other")"

# A loss that is not finite ends the training, and what was saved before stays.
with_bytes '\176' norm.weight "$folder/interrupted/language_model.safetensors" "$folder/huge"  # 8.4e37 each
diverges "$folder/huge" $((step + 2))

# Without training, what it says is not so.
"$program" --quick --steps 2 --out "$folder/untrained" > "$folder/other" 2> "$folder/errors"
status=$?
[[ $status == 1 && $(tail -n 1 "$folder/errors") == *'it is not so that the validation loss is below 2.'* ]] ||
  fail "--steps 2: exit $status and $(cat "$folder/errors")"

# Bad input.
: > "$folder/empty"
head -c 3000 /dev/zero > "$folder/zeros"
{ echo; yes 'One line is not enough.' | head -c 20000 | tr '\n' ' '; echo; } > "$folder/line"
refused 'would be replaced by what this run writes' --text "$folder/own" --save "$folder/own"
refused 'has one line only' --text "$folder/line"
refused 'name is empty' --text ''
refused "language_model: $folder: is a folder" --text "$folder"
echo 'Two lines
are not.' > "$folder/short"
yes '' | head -c 5000 > "$folder/same"
printf 'caf\xe9 %.0s' {1..1000} > "$folder/latin"
head -c 30000 "$novel" > "$folder/other_text"
head -c 100000 "$model" > "$folder/half"
{ head -c 200000 "$model"; printf 'damaged'; tail -c +200008 "$model" | head -c 1000; } > "$folder/cut"
{ printf '\377\377\377\377\377\377\377\377'; tail -c +9 "$model"; } > "$folder/long"
refused 'is empty' --text "$folder/empty"
refused 'binary data' --text "$folder/zeros"
refused 'a context of 32 needs at least 321' --text "$folder/short"
refused 'all characters are the same' --text "$folder/same"
refused 'is not UTF-8' --text "$folder/latin"
refused 'no such file' --text "$folder/none"
refuses "--text $model" "--resume $model --stop-at 400" "--resume $model --steps 500" "--resume $model --seed 1" \
  "--load $model --text $novel" "--load $model --resume $model" "--load $folder/none" "--resume $folder/none" "--resume $folder" "--resume $novel" "--resume $folder/empty" "--resume $folder/half" \
  "--resume $folder/cut" "--resume $folder/long" "--resume $model --layers 3" "--resume $model --learning-rate 0.1" \
  "--resume $model --text $folder/other_text" "--prompt né" "--heads 3" "--width 0" "--layers 0" "--layers x" \
  "--context 1" "--context 5000" "--batch -1" "--steps 1" "--learning-rate nan" "--learning-rate 0" "--dropout 1" \
  "--temperature -1" "--temperature nan" "--top-k -1" "--length x" "--save-every 0" "--save $folder" \
  "--save /dev/null/x" "--nonsense" "--seed -1" "--out /dev/null/x"
refuses_checkpoints "$model" norm.weight 400 --length 10
helps --resume
exit $failures
