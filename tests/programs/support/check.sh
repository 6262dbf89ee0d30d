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

# helps OPTION: --help shows the option.
helps() {
  "$program" --help > "$folder/help" 2>&1 && grep -q -e "$1" "$folder/help" || fail "--help failed"
}

# refuses ARGUMENTS...: each string of arguments is bad usage, and one line says so.
refuses() {
  local bad status
  for bad in "$@"; do
    # shellcheck disable=SC2086
    "$program" --quick --out "$folder/out" $bad > "$folder/bad" 2>&1
    status=$?
    [[ $status == 2 && $(wc -l < "$folder/bad") == 1 ]] || fail "$bad: exit $status and $(cat "$folder/bad")"
  done
}
