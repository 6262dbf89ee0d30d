#!/usr/bin/env bash
# seeing_the_tape prints what it says and draws it. Arguments: the build folder.
source "$(dirname "$0")/support/check.sh" "$1/examples/seeing_the_tape" || exit 1

"$program" --quick --out "$folder/out" > "$folder/text" 2> "$folder/errors" || fail "exit $?: $(cat "$folder/errors")"
grep -q '^step  op .*value .*gradient .*in$' "$folder/text" && fail "names where there are none"
grep -Eq '^ +[0-9]+  softmax .* \(2,3\) ' "$folder/text" || fail "no softmax: $(head -12 "$folder/text")"
[[ $(grep -c '^ *0-[0-9]*  encoder: [0-9]* steps' "$folder/text") == 1 ]] || fail "no folded encoder"
grep -q '^ *[0-9-]*  layers.1: [0-9]* steps .* decoder$' "$folder/text" || fail "no folded layer of the decoder"
grep -q "^  \[check_finite\] step [0-9]* 'sqrt' in spread makes the gradient of x0 inf at element 1; got" \
  "$folder/text" || fail "sqrt's gradient was not found"
[[ $(sed -n '/^where the time/,$p' "$folder/text" | grep -c ' %  ') -gt 8 ]] || fail "no profile: $(tail "$folder/text")"

for picture in tape_regression tape_transformer; do
  grep -q '^digraph' "$folder/out/$picture.dot" || fail "no graph: $picture"
  if command -v dot > /dev/null; then
    grep -q '</svg>' "$folder/out/$picture.svg" || fail "not drawn: $picture"
  fi
done
command -v dot > /dev/null || echo "seeing_the_tape: no Graphviz here: its graphs are not drawn"
[[ $(grep -c box3d "$folder/out/tape_transformer.dot") -gt 20 ]] || fail "the Transformer is not folded"

GRAPHVIZ_DOT=none "$program" --quick --out "$folder/plain" > "$folder/text" 2>&1 || fail "without Graphviz: exit $?"
[[ $(find "$folder/plain" -type f | wc -l) == 2 ]] || fail "without Graphviz: $(ls "$folder/plain")"

helps out
refuses '--nonsense' '--out /dev/null/x'
exit $failures
