#!/usr/bin/env bash
# translate learns dates and a file of pairs, saves, goes on bit for bit, and refuses bad input. Arguments: the build
# folder.
source "$(dirname "$0")/support/check.sh" "$1/examples/translate" || exit 1

# ---- dates ----

model=$folder/model
"$program" --quick --out "$folder/out" --save "$model" > "$folder/text" 2> "$folder/errors" || fail "exit $?: $(cat "$folder/errors")"
awk '/^exact/ { found = 1; if ($2 < 80 || $6 != "1000),") exit 1 } END { exit !found }' "$folder/text" ||
  fail "accuracy: $(grep '^exact' "$folder/text")"
# The table must tell the same as the line does.
awk -F, -v said="$(grep -o '([0-9]* of' "$folder/text" | tr -dc 0-9)" \
  'NR > 1 && $(NF - 2) == $(NF - 1) { right += 1 } END { exit !(NR == 1001 && right == said) }' \
  "$folder/out/translate_test.csv" || fail "the table of the test tells something else: $(grep '^exact' "$folder/text")"
# BLEU, computed again: each 1- and 2-gram found counts as often as the target has it.
awk -F, 'NR > 1 {
    target = $(NF - 2); found = $(NF - 1)
    score = length(target) > length(found) ? exp(1 - length(target) / length(found)) : 1
    for (n = 1; n <= 2; ++n) {
      delete left; matches = 0
      for (i = 1; i <= length(target) - n + 1; ++i) ++left[substr(target, i, n)]
      for (i = 1; i <= length(found) - n + 1; ++i) if (left[substr(found, i, n)]-- > 0) ++matches
      score *= (matches / (length(found) - n + 1)) ^ (0.5 ^ n)
    }
    sum += score
    if (score - $NF > 1e-9 || $NF - score > 1e-9) { print NR ": " $0 " is not " score; bad = 1 }
  }
  END { exit bad || NR != 1001 }' "$folder/out/translate_test.csv" || fail 'BLEU'
awk -F, 'NR == 2 { first = $2 } { last = $2 } END { exit !(NR == 701 && $1 == 700 && first > 2 && last < 0.3) }' \
  "$folder/out/translate_log.csv" || fail "the log: $(tail -1 "$folder/out/translate_log.csv")"
drawn translate_ training encoder_self decoder_self cross

# A saved model translates; a beam of 1 is greedy, a wider one finds the same easy answer.
for beam in 1 3; do
  got=$("$program" --load "$model" --beam $beam --translate 'the 14th of March, 1975' --translate '1962 MAY 27' 2>&1)
  [[ $got == $'1975-03-14\n1962-05-27' ]] || fail "--translate, beam $beam: $got"
done

# Two layers of four heads: 24 maps, in which every row sums to 1.
[[ $(grep -o '\[\[[0-9]' "$folder/out/translate_attention.json" | wc -l) == 24 ]] || fail "not 24 maps of attention"
grep -o '\[[0-9][0-9.e,-]*\]' "$folder/out/translate_attention.json" | tr -d '[]' |
  awk -F, '{ sum = 0; for (i = 1; i <= NF; ++i) sum += $i; if (sum < 0.999 || sum > 1.001) exit 1 } END { exit !NR }' ||
  fail "attention in a row does not sum to 1"

# Lines of stdin, one translation each; an empty one stays empty. What was never seen is named, by itself on stderr.
got=$(printf '3 May 1999\r\n\n1962 MAY 27\n' | "$program" --load "$model" --translate - 2>&1)
[[ $got == $'1999-05-03\n\n1962-05-27' ]] || fail "--translate -: $got"
"$program" --load "$model" --translate '3 May 1999 ?é' > "$folder/text" 2> "$folder/errors" || fail "unknown: exit $?"
[[ $(cat "$folder/errors") == "translate: warning: not in the vocabulary: '?', 'é'" && $(wc -l < "$folder/text") == 1 ]] ||
  fail "unknown: $(cat "$folder/errors")"

# ---- pairs ----

# Ten numbers, 'zero' to 'nine', with two words for things: 20 sentences, further columns, CRLF, capitals, marks.
numbers=(zero one two three four five six seven eight nine)
zahlen=(null eins zwei drei vier fünf sechs sieben acht neun)
for i in {0..9}; do
  printf 'I see %s, friend.\tICH SEHE %s, Freund.\tignored\tcolumns\n' "${numbers[$i]}" "${zahlen[$i]^^}"
  printf 'Where is %s?\tWo ist %s ?\r\n' "${numbers[$i]}" "${zahlen[$i]}"
done > "$folder/pairs.tsv"
small=(--pairs "$folder/pairs.tsv" --min-frequency 1 --held-out 0 --width 32 --layers 1 --batch 10
  --learning-rate 0.005 --quiet)
"$program" "${small[@]}" --steps 160 --needed 95 --out "$folder/whole" > "$folder/text" 2>&1 || fail "--pairs: exit $?"
grep -q 'i see five , friend \. => ich sehe fünf , freund \.$' "$folder/text" ||
  grep -q '"i see five , friend .","ich sehe fünf , freund .","ich sehe fünf , freund .",1$' \
    "$folder/whole/translate_test.csv" || fail "words: $(cat "$folder/whole/translate_test.csv")"
got=$("$program" --load "$folder/whole/translate.safetensors" --translate 'WHERE is three?' --beam 4 2>&1)
[[ $got == 'wo ist drei ?' ]] || fail "--translate of pairs: $got"

GNUPLOT=/none "$program" --pairs "$folder/pairs.tsv" --load "$folder/whole/translate.safetensors" --beam 3 \
  --out "$folder/beam" > "$folder/text" 2>&1 || fail "--beam 3: exit $? and $(cat "$folder/text")"
for picture in encoder_self decoder_self cross; do  # what is drawn: a map for each of four heads, its rows summing to 1
  sed 's/","/comma/g' "$folder/beam/translate_$picture.csv" |
    awk -F, 'NR > 1 { maps[$1] = 1; row[$1 " " $2] += $4 }
      END { for (r in row) if (row[r] < 0.999 || row[r] > 1.001) exit 1; exit length(maps) != 4 }' ||
    fail "drawn: $(head -40 "$folder/beam/translate_$picture.csv")"
done

# Sources are held out with all their translations, and long pairs left out.
cat "$folder/pairs.tsv" <(sed 's/ICH/SIE/' "$folder/pairs.tsv") > "$folder/twice.tsv"
"$program" --pairs "$folder/twice.tsv" --min-frequency 1 --held-out 50 --steps 1 --longest 5 --out "$folder/held" \
  > "$folder/text" 2>&1 || fail "--held-out: exit $?"
grep -q '^10 pairs to train on, 10 to test; 20 longer than 5 words are left out$' "$folder/text" ||
  fail "--held-out: $(head -1 "$folder/text")"
awk -F'"?,"?' 'NR > 1 { ++seen[$1] } END { for (source in seen) if (seen[source] != 2) exit 1 }' \
  "$folder/held/translate_test.csv" || fail "a source is on both sides: $(cat "$folder/held/translate_test.csv")"

# Stopped, and gone on with: the same log, the same file, byte for byte.
mkdir "$folder/part"
touch "$folder/part/translate_cross.svg"  # an earlier run's
"$program" "${small[@]}" --steps 160 --needed 95 --stop-at 70 --out "$folder/part" > "$folder/text" 2>&1 || fail "--stop-at: exit $?"
cp "$folder/part/translate.safetensors" "$folder/part_model"
grep -q 'stopped after step 70 of 160' "$folder/text" || fail "--stop-at: $(cat "$folder/text")"
[[ ! -e $folder/part/translate_cross.svg ]] || fail "an earlier run's picture stays beside the log"
[[ $(wc -l < "$folder/part/translate_log.csv") == 71 ]] || fail "--stop-at: the log"
"$program" --pairs "$folder/pairs.tsv" --resume "$folder/part/translate.safetensors" --quiet --out "$folder/part" \
  > "$folder/text" 2>&1 || fail "--resume: exit $? and $(cat "$folder/text")"
for file in log.csv test.csv; do
  cmp -s "$folder/whole/translate_$file" "$folder/part/translate_$file" || fail "--resume: another $file"
done
cmp -s "$folder/whole/translate.safetensors" "$folder/part/translate.safetensors" || fail "--resume: another model"

# SIGINT: the step is finished, the model saved, the exit code 0; and it goes on the same.
"$program" "${small[@]}" --steps 100000 --save-every 50 --out "$folder/signal" > "$folder/text" 2>&1 &
job=$!
wait_until test -e "$folder/signal/translate.safetensors" || fail "no checkpoint came"
kill -INT $job
wait $job
status=$?
steps=$(sed -n 's/^stopped after step \([0-9]*\) of 100000; to go on: --pairs .* --resume .*/\1/p' "$folder/text")
[[ $status == 0 && -n $steps && $(wc -l < "$folder/signal/translate_log.csv") == $((steps + 1)) ]] ||
  fail "SIGINT: exit $status and $(cat "$folder/text")"
"$program" --pairs "$folder/pairs.tsv" --resume "$folder/signal/translate.safetensors" --quiet --out "$folder/signal" \
  --stop-at $((steps + 10)) > "$folder/text" 2>&1 || fail "--resume after SIGINT: exit $? and $(cat "$folder/text")"
"$program" "${small[@]}" --steps 100000 --stop-at $((steps + 10)) --out "$folder/no_signal" > /dev/null 2>&1
cmp "$folder/no_signal/translate_log.csv" "$folder/signal/translate_log.csv" || fail "after SIGINT, the losses are others"

# SIGINT while the test is translated: nothing is lost, and the exit code is 0.
GNUPLOT=/none "$program" --load "$model" --beam 100 --out "$folder/scored" > "$folder/text" 2>&1 &
job=$!
wait_until test -e "$folder/scored/translate_training.csv" || fail "no test began"
sleep 0.5
kill -INT $job
wait $job
status=$?
[[ $status == 0 && $(tail -n 1 "$folder/text") == 'stopped before the test was translated' ]] ||
  fail "SIGINT in the test: exit $status and $(cat "$folder/text")"

shows_progress --threads 1
survives_kills 5 translate_log.csv "${small[@]}" --dropout 0.1 --steps 100000

# What was not learned is said.
"$program" "${small[@]}" --steps 2 --needed 95 --out "$folder/short" > "$folder/text" 2> "$folder/errors"
status=$?
[[ $status == 1 && $(cat "$folder/errors") == 'translate: it is not so that at least 95 % are exact' ]] ||
  fail "--steps 2: exit $status and $(cat "$folder/errors")"

# A loss that is not finite ends the training, and what was saved before stays.
with_bytes '\176' transformer.encoder.norm.weight "$folder/part_model" "$folder/huge"  # 8.4e37 each
diverges "$folder/huge" 71 --pairs "$folder/pairs.tsv"

# ---- bad input: one line that says what, exit 2, nothing written ----

file=$folder/bad.tsv
bad_pairs() {  # WHAT IT MUST SAY, THE FILE AS printf HAS IT
  # shellcheck disable=SC2059
  printf "$2" > "$file"
  refused "$1" --pairs "$file" --min-frequency 1
}
bad_pairs 'at least 2 pairs' ''
bad_pairs 'got 1' 'one\tline here\n'
bad_pairs 'line 2: no tab' 'a b\tc d\nno tab\n'
bad_pairs 'line 3: the source' 'a b\tc d\n\n \tx\n'
bad_pairs 'line 2: the source' 'a b\tc d\n\t\n'
bad_pairs 'line 1: the source' '\t\t\t\na b\tc d\n'
bad_pairs 'line 2: the target' 'a b\tc d\na b\t\tx\n'
bad_pairs 'line 2, byte 2: binary' 'a b\tc d\na\0b\tc\n'
bad_pairs 'line 1, byte 3: is not UTF-8' 'a \377b\tc d\n'
bad_pairs 'the source must have at least 2 words' 'a\tb c\na\tc b\n'
bad_pairs 'the target must have at least 2 words' 'a b\tc\nb a\tc\n'
refused 'come 2 times or more' --pairs "$file"
refused 'no such file' --pairs "$folder/missing"
for option in --pairs --save --load --resume; do refused 'name is empty' $option ''; done
refused 'a folder' --pairs "$folder"
refused 'would be replaced by what this run writes' --pairs "$folder/pairs.tsv" --save "$folder/./pairs.tsv"
cp "$folder/pairs.tsv" "$folder/out/translate_test.csv"
refused 'would be replaced by what this run writes' --pairs "$folder/out/translate_test.csv"
cmp "$folder/pairs.tsv" "$folder/out/translate_test.csv" || fail 'a refused run changed the pairs'
refused 'would be replaced by what this run writes' --save "$folder/out/translate_log.csv"
refused 'must be one line' --translate $'3 May\n1999'
printf '3 May 1999\n\xff\n' | "$program" --load "$model" --translate - > "$folder/text" 2>&1
[[ $(tail -1 "$folder/text") == 'translate: --translate -, line 2, byte 1: is not UTF-8' ]] || fail "$(cat "$folder/text")"
"$program" --load "$model" --translate - < /dev/zero > "$folder/bad" 2>&1
[[ $? == 2 && $(wc -l < "$folder/bad") == 1 ]] || fail "an endless line: $(cat "$folder/bad")"
"$program" --load "$model" --translate - < "$folder" > "$folder/bad" 2>&1
[[ $? == 2 ]] && grep -q 'standard input cannot be read' "$folder/bad" || fail "a folder as input: $(cat "$folder/bad")"
refused 'nothing to translate' --translate ' '
refused '--beam' --translate --beam 4
refused 'May' --translate 3 May 1999
refused 'heads' --heads 5
refused 'is at step 700' --resume "$model" --stop-at 700
refused 'trained with --steps 700; got 1000' --resume "$model" --steps 1000
refused 'learning-rate' --learning-rate nan
refused 'exclude' --load a --resume b
refuses '--width 3' '--steps 0' '--steps -1' '--steps 1.5' '--beam 0' '--nonsense' '--out /dev/null/x' \
  '--save /dev/null/x/y' '--save /dev/null'

# Checkpoints that are missing, damaged, of another program, of other texts, or of another shape.
refused 'must be there' --resume "$folder/missing"
head -c 5000 "$model" > "$folder/damaged"
refused "$folder/damaged: " --resume "$folder/damaged"
refused "$folder/damaged: " --load "$folder/damaged" --translate '3 May 1999'
printf '\2\0\0\0\0\0\0\0{}' > "$folder/empty"
refused 'one that translate has saved' --resume "$folder/empty"
refuses_checkpoints "$model" transformer.encoder.norm.weight 700 --translate '3 May 1999'
refused 'trained with --width 64; got 32' --resume "$model" --width 32
refused 'trained with --seed 0; got 1' --resume "$model" --seed 1
refused 'trained on dates' --resume "$model" --pairs "$folder/pairs.tsv"
refused 'trained on pairs' --resume "$folder/whole/translate.safetensors"
sed 's/friend/fellow/' "$folder/pairs.tsv" > "$folder/others.tsv"
refused 'trained on other pairs' --resume "$folder/whole/translate.safetensors" --pairs "$folder/others.tsv"
LC_ALL=C sed 's/"settings.width":"64"/"settings.width":"48"/' "$model" > "$folder/shape"
cmp -s "$model" "$folder/shape" && fail 'the settings are not where this test looks for them'
refused "$folder/shape: " --resume "$folder/shape"

helps --min-frequency
exit $failures
