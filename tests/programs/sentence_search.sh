#!/usr/bin/env bash
# sentence_search compares, indexes, answers, learns and classifies, and refuses bad input. With the small random model
# of the tests; with the real one, that `make minilm` fetches, where it is there. Arguments: the build folder and the
# source folder.
source "$(dirname "$0")/support/check.sh" "$1/examples/sentence_search" || exit 1
export OMP_NUM_THREADS=1
tiny=$2/tests/reference/tiny_bert
run() { "$program" --model "$tiny" --out "$folder/out" "$@"; }

# Two texts: a number from -1 to 1; the same by any order, and 1 for equal ones.
[[ $(run --similarity 'The cat sleeps.' 'The cat sleeps.') == 1.0000 ]] || fail "a text is not like itself"
[[ $(run --similarity 'The cat sleeps.' 'LE ÇHAT' 2>&1) == "$(run --similarity 'le chat' 'the cat sleeps.')" ]] ||
  fail "the order, case or accents matter"

# A text in brackets is one text.
[[ $(run --similarity '[the cat]' '[the cat]' 2>&1) == 1.0000 ]] || fail "brackets: $(run --similarity '[a]' '[a]' 2>&1)"
[[ $(run --similarity '[the cat]' 'the cat' 2>&1) != 1.0000 ]] || fail "brackets are lost"

# An index: lines are found by themselves, blank ones never, and one is told apart from another model's.
printf 'The cat sleeps on the sofa.\n\n  \nInterest rates rose.\nПривет, мир!\nA man plays a guitar.' > "$folder/lines"
run --index "$folder/lines" --save "$folder/index" > "$folder/text" 2> "$folder/errors" ||
  fail "--index: exit $?, $(cat "$folder/errors")"
grep -q '^4 lines in ' "$folder/text" || fail "--index said $(cat "$folder/text")"
run --search "$folder/index" --query 'the CAT sleeps on the sofa.' --query 'привет, мир!' --top 1 > "$folder/text" 2>&1
printf '> the CAT sleeps on the sofa.\n 1.000      1  The cat sleeps on the sofa.\n> привет, мир!\n 1.000      5  Привет, мир!\n' \
  > "$folder/expected"
cmp "$folder/expected" "$folder/text" || fail "--search found $(cat "$folder/text")"
printf 'the CAT sleeps on the sofa.\r\n\nпривет, мир!' | run --search "$folder/index" --top 1 > "$folder/text" 2>&1
cmp "$folder/expected" "$folder/text" || fail "from a pipe, --search found $(cat "$folder/text")"
[[ $(run --search "$folder/index" --query '[a,b]' --query '[]' --top 1 | grep '^>') == $'> [a,b]\n> []' ]] ||
  fail "queries in brackets: $(run --search "$folder/index" --query '[a,b]' --query '[]' --top 1 2>&1)"
[[ $(run --search "$folder/index" --query x --top 100 | wc -l) == 5 ]] || fail "--top 100 is not all lines"
run --index "$folder/lines" --batch 1 --save "$folder/index_1" --query 'Interest rates rose.' --top 1 > "$folder/text" 2>&1
tail -1 "$folder/text" | grep -q '^ 1.000      4  Interest' || fail "--index --query found $(cat "$folder/text")"
extra=$(find "$folder" -name '.*.tmp')
[[ -z $extra ]] || fail "left behind: $extra"

# Learning: what it was shown it knows, what is saved classifies, and comes out the same again.
for i in {1..30}; do
  printf 'animal\tthe cat number %d sleeps\nmoney\tinterest rates rose by %d %%\n' $i $i
done > "$folder/labelled"
for rate in 0 0.001; do
  run --train "$folder/labelled" --encoder-rate $rate --save "$folder/model_$rate" > "$folder/text" 2> "$folder/errors" ||
    fail "--train: exit $?, $(cat "$folder/errors")"
  grep -q '^right: 12 of 12 held-out lines' "$folder/text" || fail "--train: $(tail -2 "$folder/text")"
  answer=$(printf 'the cat number 7 sleeps\n\ninterest rates rose by 7 %%\n' | "$program" --model "$folder/model_$rate" --classify)
  [[ $answer == ?.???'  animal'$'\n'?.???'  money' ]] || fail "--classify says $answer"
  run --train "$folder/labelled" --encoder-rate $rate --save "$folder/again" > /dev/null 2>&1
  cmp "$folder/again/classifier.safetensors" "$folder/model_$rate/classifier.safetensors" || fail "not the same again"
done
[[ $(wc -l < "$folder/out/sentence_search.csv") == 21 ]] || fail "log: $(tail -1 "$folder/out/sentence_search.csv")"
"$program" --model "$folder/model_0" --similarity 'a cat' 'no dog' > "$folder/text"
run --similarity 'a cat' 'no dog' | cmp - "$folder/text" || fail "a frozen encoder has changed"
"$program" --model "$folder/model_0.001" --search "$folder/index" --query x > "$folder/bad" 2>&1
[[ $? == 2 ]] && grep -q 'is an index of another model' "$folder/bad" || fail "another model: $(cat "$folder/bad")"
run --train "$folder/labelled" --learning-rate 1e-5 --encoder-rate 50 --epochs 20 --save "$folder/huge" \
  > /dev/null 2> "$folder/errors"
status=$?
[[ $status == 0 || ($status == 1 && ! -e $folder/huge/model.safetensors) ]] ||
  fail "a large rate: exit $status, $(cat "$folder/errors")"

# Ctrl-C: the step ends, and what was learnt is saved.
"$program" --model "$tiny" --train "$folder/labelled" --epochs 100000 --quiet --out "$folder/stopping" \
  --save "$folder/stopped" > "$folder/text" 2> "$folder/errors" &
process=$!
wait_until test -d "$folder/stopping" || fail "--train does not begin"
sleep 1
kill -INT $process
wait $process
status=$?
[[ $status == 0 && -s $folder/stopped/classifier.safetensors ]] && grep -q '^stopped after step [0-9]* of' "$folder/text" ||
  fail "interrupted: exit $status, $(cat "$folder/text" "$folder/errors")"
with_bytes '\377' weight "$folder/model_0/classifier.safetensors" "$folder/nan"
cp "$folder/nan" "$folder/model_0/classifier.safetensors"
"$program" --model "$folder/model_0" --classify > "$folder/bad" 2>&1 < "$folder/lines"
[[ $? == 2 ]] && grep -q 'all numbers must be finite' "$folder/bad" || fail "a classifier of NaN: $(cat "$folder/bad")"

# A trained model is saved as a whole: whenever it is killed, or the disk is full, there is the old one or the new one.
for labels in 'a b' 'x y'; do
  read -r one two <<< "$labels"
  for i in {1..30}; do printf '%s\tthe cat number %d sleeps\n%s\trates rose by %d %%\n' "$one" "$i" "$two" "$i"; done \
    > "$folder/labels_$one"
  run --train "$folder/labels_$one" --encoder-rate 0.01 --epochs 1 --save "$folder/whole_$one" > /dev/null 2>&1 ||
    fail "--train: exit $?"
done
same() { diff -rq "$folder/whole_$1" "$folder/$2" > /dev/null; }
same a whole_x && fail "two trainings made the same model"
cp -r "$folder/whole_a" "$folder/torn"
for kill in {1..12}; do
  label=$([[ $((kill % 2)) == 1 ]] && echo x || echo a)
  "$program" --model "$tiny" --train "$folder/labels_$label" --encoder-rate 0.01 --epochs 1 --save "$folder/torn" \
    --out "$folder/out" > /dev/null 2>&1 &
  process=$!
  files() { ls "$folder"/.torn.*.tmp/* > /dev/null 2>&1 || ! kill -0 $process 2> /dev/null; }
  wait_until files || fail "nothing was saved"
  sleep "0.0$((RANDOM % 3))$((RANDOM % 10))"
  kill -KILL $process 2> /dev/null
  wait $process 2> /dev/null
  same a torn || same x torn || fail "a model torn by a kill: $(diff -rq "$folder/whole_a" "$folder/torn")"
done
run --train "$folder/labels_x" --encoder-rate 0.01 --epochs 1 --save "$folder/torn/" > "$folder/text" 2>&1 ||
  fail "after kills: $(cat "$folder/text")"
same x torn || fail "after kills, another model"
[[ -z $(find "$folder" -name '.torn.*') ]] || fail "kills left behind: $(find "$folder" -name '.torn.*')"
(ulimit -f 100; run --train "$folder/labels_a" --encoder-rate 0.01 --epochs 1 --save "$folder/torn" > /dev/null 2> "$folder/errors")
status=$?
[[ $status == 1 && $(wc -l < "$folder/errors") == 1 ]] || fail "a full disk: exit $status and $(cat "$folder/errors")"
same x torn || fail "a full disk spoilt the model"
[[ -z $(find "$folder" -name '.torn.*') ]] || fail "a full disk left behind: $(find "$folder" -name '.torn.*')"

# What was saved earlier is kept, a file at the end of a link too.
rm -rf "$folder/torn.previous"
run --train "$folder/labels_a" --encoder-rate 0.01 --epochs 1 --save "$folder/torn" > /dev/null 2>&1
same a torn && same x torn.previous || fail "the earlier model is not kept"
mkdir "$folder/disk"
echo precious > "$folder/disk/file"
ln -s disk/file "$folder/link"
run --index "$folder/lines" --save "$folder/link" > "$folder/text" 2>&1 || fail "--save of a link: $(cat "$folder/text")"
cmp "$folder/index" "$folder/disk/file" && [[ -L $folder/link && $(cat "$folder/disk/file.previous") == precious ]] ||
  fail "--save of a link: $(ls -l "$folder/disk")"

# Bad input: one line that says what, and exit code 2.
says() {
  local text=$1
  shift
  "$@" > "$folder/bad" 2>&1 < /dev/null
  local status=$?
  [[ $status == 2 && $(wc -l < "$folder/bad") == 1 ]] && grep -qF -e "$text" "$folder/bad" ||
    fail "$*: exit $status and $(head -c 500 "$folder/bad")"
}
says 'make minilm' "$program" --model "$folder/none" --similarity a b
mkdir "$folder/none.previous"
says "the one before it is in $folder/none.previous" "$program" --model "$folder/none" --similarity a b
says 'one of --similarity' run
says 'one of --similarity' run --classify --similarity a b
for option in --index --search --train --save; do says 'name is empty' run $option ''; done
says '--save is for' run --similarity a b --save "$folder/x"
says 'text 2: the text must be UTF-8; got byte 1' run --similarity a $'b\xff'
says '--query, line 1, byte 3: is not UTF-8' run --search "$folder/index" --query $'ab\xc3'
says '--query, line 1, byte 2: binary data' run --search "$folder/index" --query $'a\e[31mb'
printf 'a\nb\xffc\n' | run --search "$folder/index" > /dev/null 2> "$folder/errors"
grep -q 'standard input, line 2, byte 2: is not UTF-8' "$folder/errors" || fail "a pipe: $(cat "$folder/errors")"
says 'has no classifier' run --classify
run --search "$folder/index" < "$folder" > "$folder/bad" 2>&1
[[ $? == 2 ]] && grep -q 'standard input cannot be read' "$folder/bad" || fail "a folder as input: $(cat "$folder/bad")"
run --search "$folder/index" <&- > "$folder/bad" 2>&1
[[ $? == 2 ]] && grep -q 'standard input cannot be read' "$folder/bad" || fail "no input: $(cat "$folder/bad")"
run --search "$folder/index" < /dev/zero > "$folder/bad" 2>&1
[[ $? == 2 ]] && grep -q 'a line is longer' "$folder/bad" || fail "an endless line: $(cat "$folder/bad")"
for file in config.json vocab.txt model.safetensors; do
  cp -r "$tiny" "$folder/spoilt"
  rm "$folder/spoilt/$file"
  says "$file" "$program" --model "$folder/spoilt" --similarity a b
  head -c 1000 "$tiny/$file" | tail -c +5 > "$folder/spoilt/$file"
  says "" "$program" --model "$folder/spoilt" --similarity a b
  rm -r "$folder/spoilt"
done
: > "$folder/empty"
printf '\n  \n' > "$folder/blank"
printf 'fine\nnot \xff so\n' > "$folder/latin"
printf 'one\ta\ntwo\n' > "$folder/no_tab"
printf 'one\ta\none\tb\n' > "$folder/one_label"
printf 'one\ta\ntwo\tb\n' > "$folder/short"
head -c 300 "$folder/index" > "$folder/cut"
for file in empty blank latin none .; do says '' run --index "$folder/$file"; done
grep -q 'line 2' <(run --index "$folder/latin" 2>&1) || fail "the line that is not UTF-8 is not named"
says 'line 2 must be a label, a tab and a text' run --train "$folder/no_tab"
says 'two labels' run --train "$folder/one_label"
says 'too few' run --train "$folder/short"
for file in empty lines cut none .; do says '' run --search "$folder/$file" --query x; done
LC_ALL=C sed 's/guitar/\\u001b/' "$folder/index" > "$folder/escape"
says 'binary data' run --search "$folder/escape" --query x
LC_ALL=C sed 's/animal/\\u001b/' "$folder/model_0.001/classifier.safetensors" > "$folder/escape"
cp "$folder/escape" "$folder/model_0.001/classifier.safetensors"
says 'label 0, line 1, byte 1: binary data' "$program" --model "$folder/model_0.001" --classify
says 'an index that sentence_search has saved' run --search "$folder/model_0/classifier.safetensors" --query x
says 'must be F32 or F64' run --search "$tiny/model.safetensors" --query x
says 'needs a plain file' run --index "$folder/lines" --save "$folder"
says 'would be replaced' run --index "$folder/lines" --save "$folder/./lines"
cp "$folder/labelled" "$folder/out/sentence_search.csv"
says 'would be replaced' run --train "$folder/out/sentence_search.csv"
cmp "$folder/labelled" "$folder/out/sentence_search.csv" || fail "a refused run changed the lines"
cp -r "$tiny" "$folder/own"
for name in config.json vocab.txt model.safetensors; do
  says 'would be replaced' "$program" --model "$folder/own" --index "$folder/lines" --save "$folder/own/$name"
done
says 'would be replaced' "$program" --model "$folder/own" --train "$folder/labelled" --save "$folder/own"
mv "$folder/own" "$folder/own.previous"
says 'would be replaced' "$program" --model "$folder/own.previous" --train "$folder/labelled" --save "$folder/own"
cp "$folder/labelled" "$folder/own.previous/config.json"
says 'would be replaced' run --train "$folder/own.previous/config.json" --save "$folder/own.previous"
diff -q "$folder/labelled" "$folder/own.previous/config.json" || fail "a refused run changed the lines"
mkdir "$folder/full"
echo > "$folder/full/letter"
says 'letter is in the way' run --train "$folder/labelled" --save "$folder/full"
ln -s loop "$folder/loop"
for name in loop "$(printf 'x%.0s' {1..300})"; do
  says 'no model in' "$program" --model "$folder/$name" --similarity a b
  says '' run --index "$folder/lines" --save "$folder/$name"
  says '' run --train "$folder/labelled" --save "$folder/$name"
  says '' run --train "$folder/labelled" --out "$folder/$name"
done
printf 'one\ta\ntwo\t \n' > "$folder/no_text"
says 'line 2 must be a label, a tab and a text' run --train "$folder/no_text"
{ head -c 50000000 /dev/zero | tr '\0' '"'; printf 'a\tx\nb\ty\n'; yes $'c\tz' | head -20; } > "$folder/long_label"
says 'the labels are too long' run --train "$folder/long_label"
rm "$folder/long_label"
says '' run --index "$folder/lines" --save /dev/null/x
says '' run --train "$folder/labelled" --save /dev/null/x
says '--save needs a folder' run --train "$folder/labelled" --save "$folder/lines"
for option in '--top 0' '--batch 0' '--epochs x' '--encoder-rate -1' '--learning-rate nan' '--held-out 1' '--nonsense'; do
  # shellcheck disable=SC2086
  says '' run --train "$folder/labelled" $option
done
helps --similarity

# The real model.
minilm=$2/minilm
if [[ ! -e $minilm/model.safetensors ]]; then
  echo "sentence_search: skipped: no model in $minilm (make minilm)"
  exit $failures
fi
[[ $("$program" --model "$minilm" --similarity 'A man plays a guitar.' 'Someone makes music.') == 0.5444 ]] ||
  fail "the real model's similarity"
"$program" --model "$minilm" --index "$folder/lines" --save "$folder/real" --query 'Who makes music?' --top 1 \
  > "$folder/text" 2>&1
grep -q 'A man plays a guitar' "$folder/text" || fail "the real model found $(cat "$folder/text")"
says 'is an index of another model' "$program" --model "$minilm" --search "$folder/index" --query x
exit $failures
