# What the tests of programs share. Sourced with the program's path; the test ends with `exit $failures`.
set -u
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
fail() {
  echo "$1"
  failures=1
}

# drawn PREFIX PICTURE...: in $folder/out, each picture in both formats, or its numbers where gnuplot is not installed;
# nothing half-written beside them.
drawn() {
  local prefix=$1 picture path extra
  shift
  for picture in "$@"; do
    path=$folder/out/$prefix$picture
    { [[ -s $path.svg && -s $path.png ]] || [[ -s $path.csv ]]; } || fail "not drawn: $picture"
  done
  extra=$(find "$folder/out" -type f ! -name "$prefix*.svg" ! -name "$prefix*.png" ! -name "$prefix*.csv" \
    ! -name "$prefix*attention.json")
  [[ -z $extra ]] || fail "left behind: $extra"
}

# wait_until CONDITION...: for at most half a minute.
wait_until() {
  local tries=0
  until "$@"; do
    ((tries++ < 3000)) || return 1
    sleep 0.01
  done
}

# step_of CHECKPOINT: how many steps it has done.
step_of() { head -c 100000 "$1" | grep -ao '"optimizer.0.step":"[0-9]*' | grep -o '[0-9]*$'; }

# survives_kills COUNT LOG ARGUMENTS...: killed that many times, each at a random moment of a run that saves every step,
# the program goes on from its checkpoint each time, and ends with the losses that an unbroken run has in its LOG.
survives_kills() {
  local kills=$1 log=$2 saved last=$folder/last begin=() process status steps
  shift 2
  saved=$folder/killed/$(basename "$program").safetensors
  saved_anew() { [[ -e $saved && ! $saved -ef $last ]] || ! kill -0 "$process" 2> /dev/null; }
  for ((; kills > 0; --kills)); do
    "$program" "$@" "${begin[@]}" --save-every 1 --out "$folder/killed" > /dev/null 2> "$folder/errors" &
    process=$!
    wait_until saved_anew || fail "no checkpoint came"
    sleep "0.0$((RANDOM % 10))$((RANDOM % 10))"
    kill -KILL $process 2> /dev/null
    wait $process 2> /dev/null
    status=$?
    [[ $status == 137 ]] || fail "not killed: exit $status, $(cat "$folder/errors")"
    ln -f "$saved" "$last"  # what it holds is kept, so that the next one has another inode
    begin=(--resume "$saved")
  done
  steps=$(($(step_of "$saved") + 10))
  "$program" "$@" "${begin[@]}" --stop-at $steps --out "$folder/killed" > /dev/null 2> "$folder/errors" &&
    "$program" "$@" --stop-at $steps --out "$folder/unbroken" > /dev/null 2>> "$folder/errors" ||
    fail "after kills: exit $?, $(cat "$folder/errors")"
  [[ $(wc -l < "$folder/unbroken/$log") == $((steps + 1)) ]] || fail "not $steps steps without a kill"
  cmp "$folder/unbroken/$log" "$folder/killed/$log" || fail "after kills, the losses are others"
  [[ -z $(find "$folder/killed" -name '.*') ]] || fail "kills left behind: $(ls -A "$folder/killed")"
}

# with_bytes BYTE ARRAY FROM TO: a checkpoint in which the array's first 8 numbers are made of that byte.
with_bytes() {
  local header start
  header=$(od -An -tu8 -N8 "$3")
  start=$(head -c $((8 + header)) "$3" | grep -ao "\"$2\":{[^}]*_offsets\":\[[0-9]*" | grep -o '[0-9]*$')
  start=$((8 + header + start))
  { head -c $start "$3"; head -c 32 /dev/zero | tr '\0' "$1"; tail -c +$((start + 33)) "$3"; } > "$4"
}

# diverges CHECKPOINT STEP ARGUMENTS...: gone on with, its loss is not finite in that step: one line says so, the exit
# code is 1, and the checkpoint is as it was.
diverges() {
  local checkpoint=$1 step=$2 status
  shift 2
  cp "$checkpoint" "$checkpoint.before"
  "$program" --resume "$checkpoint" "$@" --quiet --out "$folder/diverged" > /dev/null 2> "$folder/errors"
  status=$?
  [[ $status == 1 && $(wc -l < "$folder/errors") == 1 ]] && grep -q "step $step: the loss" "$folder/errors" ||
    fail "a loss that is not finite: exit $status and $(cat "$folder/errors")"
  cmp "$checkpoint" "$checkpoint.before" || fail "a loss that is not finite was saved"
}

# hostile CHECKPOINT SED TO: a small file with the checkpoint's texts, which SED makes say something else, and no arrays.
hostile() {
  local LC_ALL=C texts header
  texts=$(head -c 100000 "$1" | grep -ao '"__metadata__":{[^}]*}' | sed 's/"optimizer[^,]*,//g' | sed "$2")
  header="{$texts,\"log.loss\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}"
  # shellcheck disable=SC2059
  printf "$(printf '\\%03o' $((${#header} % 256)) $((${#header} / 256)))\0\0\0\0\0\0" > "$3"
  printf '%s' "$header" >> "$3"
}

# refuses_checkpoints CHECKPOINT ARRAY STEP ARGUMENTS...: that finished model, with that array and so many steps, is
# refused where it is not what a training left.
refuses_checkpoints() {
  local good=$1 array=$2 step=$3 file=$folder/not_good how
  shift 3
  for how in --load --resume; do
    with_bytes '\377' "$array" "$good" "$file"
    refused "$file: all numbers must be finite, and not so in \"$array\"" "$@" $how "$file"
    LC_ALL=C sed "s/\"optimizer.0.step\":\"$step\"/\"optimizer.0.step\":\"$((step - 1))\"/" "$good" > "$file"
    refused "$file: the optimizer must have done the steps that have a loss" "$@" $how "$file"
    LC_ALL=C sed 's/\("optimizer.group.0.initial_learning_rate":"0.00\)[0-9]/\19/' "$good" > "$file"
    refused "$file: the optimizer must be that of the settings: \"group.0.initial_learning_rate\"" "$@" $how "$file"
    hostile "$good" 's/"settings.steps":"[0-9]*"/"settings.steps":"99999999"/' "$file"
    refused "$file: its steps must be from" "$@" $how "$file"
    hostile "$good" 's/"settings.width":"[0-9]*"/"settings.width":"1024"/; s/"settings.layers":"[0-9]*"/"settings.layers":"12"/' "$file"
    refused "$file: has 0 numbers; a net of its settings has at least" "$@" $how "$file"
  done
  LC_ALL=C sed 's/"fingerprint"/"fingerprinx"/' "$good" > "$file"
  refused "$file: a text is missing; got \"fingerprint\"" "$@" --resume "$file"
}

# shows_progress ARGUMENTS...: the program, which takes long, says every 5 seconds how far it is, each time on a
# line of its own, and on a terminal on one line that changes.
shows_progress() {
  local line='step [0-9]*/100000  loss [0-9.]*  rate [0-9.e-]*  [0-9]* tokens/s  [0-9:]* left'
  timeout -s INT 8 "$program" "$@" --steps 100000 --out "$folder/plain" > /dev/null 2> "$folder/plain_progress" &
  TERM=xterm timeout 20 script -qec "$program $* --steps 100000 --stop-at 40 --out $folder/live" /dev/null \
    > "$folder/live_progress" < /dev/null
  [[ $(tr '\r' '\n' < "$folder/live_progress" | grep -c $'^\033\\[K'"$line\$") -ge 2 ]] ||
    fail "no live line: $(cat -v "$folder/live_progress")"
  wait $!
  [[ $(wc -l < "$folder/plain_progress") == 1 ]] && grep -q "^$line\$" "$folder/plain_progress" ||
    fail "no plain line: $(cat -v "$folder/plain_progress")"
}

# helps OPTION: --help shows the option. And a number must be decimal.
helps() {
  "$program" --help > "$folder/help" 2>&1 && grep -q -e "$1" "$folder/help" || fail "--help failed"
  refused "decimal number that doesn't begin with 0 is needed; got '010'" --seed 010
}

# refused TEXT ARGUMENTS...: that is bad usage or input, and one line with that text says so.
refused() {
  local says=$1 status
  shift
  timeout 20 "$program" --quick --out "$folder/out" "$@" > "$folder/bad" 2>&1
  status=$?
  [[ $status == 2 && $(wc -l < "$folder/bad") == 1 ]] && grep -qF -- "$says" "$folder/bad" ||
    fail "$*: exit $status and $(cat "$folder/bad")"
}

# refuses ARGUMENTS...: each string of arguments is bad usage, and one line says so.
refuses() {
  local bad
  for bad in "$@"; do
    # shellcheck disable=SC2086
    refused '' $bad
  done
}
