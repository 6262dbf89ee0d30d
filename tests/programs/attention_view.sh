#!/usr/bin/env bash
# attention_view's page shows the layer and head that are clicked and what a query looks at, in a real browser; bad files
# are refused. Arguments: the build folder.
source "$(dirname "$0")/support/check.sh" "$1/examples/attention_view" || exit 1

cat > "$folder/maps.json" << 'END'
{"title": "Two </script><b>layers</b>", "layers": [
  {"name": "first", "queries": ["a", "b"], "keys": ["a", "b"], "heads": [[[1, 0], [0.5, 0.5]], [[0, 1], [1, 0]]]},
  {"name": "second", "queries": ["what", " "], "keys": ["x", "<y>", "z"],
   "heads": [[[0.2, 0.3, 0.5], [0, 0, 0]], [[0.75, 0.25, 0], [0.1, 0.2, 0.7]]]}]}
END
"$program" "$folder/maps.json" --out "$folder/out" > "$folder/text" 2>&1 || fail "exit $?: $(cat "$folder/text")"
page=$folder/out/attention_view.html
[[ $(find "$folder/out" -type f) == "$page" ]] || fail "left behind: $(ls "$folder/out")"
grep -o 'https\?://[^"'"'"' ]*' "$page" | grep -v '^http://www.w3.org/2000/svg$' && fail "the page names these addresses"

# What multihead_attention saves is read.
"$1/examples/multihead_attention" --steps 10 --out "$folder/learned" > /dev/null 2>&1
"$program" "$folder/learned/multihead_attention.json" --out "$folder/learned" > "$folder/text" 2>&1 ||
  fail "multihead_attention.json: $(cat "$folder/text")"

browser=
for name in chromium chromium-browser google-chrome; do command -v $name > /dev/null && browser=$name && break; done
if [[ -z $browser ]]; then
  echo "attention_view: SKIPPED in a browser: there is no chromium here"
else
  # A visitor: clicks the second layer and head, points at the query "what", then at a cell.
  cat > "$folder/visit.html" << 'END'
<script>
{  // names of its own
const said = [];
const point = (element, type) => element.dispatchEvent(new MouseEvent(type));
const press = (bar, i) => document.querySelectorAll('#' + bar + ' button')[i].click();
const links = () => [...document.querySelectorAll('.link')].filter(l => l.style.opacity > 0)
  .map(l => l.dataset.q + '>' + l.dataset.k).join(' ');
try {
  said.push(document.title, links());
  press('layers', 1);
  press('heads', 1);
  said.push(document.querySelectorAll('.cell').length, links());
  point(document.querySelector('.token'), 'mouseenter');
  said.push(links(), document.getElementById('say').textContent);
  point(document.querySelector('.token'), 'mouseleave');
  point(document.querySelectorAll('.cell')[4], 'mouseenter');
  said.push(document.getElementById('say').textContent, document.querySelectorAll('.cell.on').length);
} catch (error) {
  said.push(error);
}
document.body.append('SAID ' + said.join(' | ') + ' END');
}
</script>
END
  sed -e "/<\/body>/{r $folder/visit.html" -e 'd}' "$page" > "$folder/visited.html"
  HOME=$folder timeout 60 $browser --headless --no-sandbox --disable-gpu --dump-dom "file://$folder/visited.html" \
    > "$folder/dom" 2> "$folder/errors"
  said=$(sed -n 's/.*SAID \(.*\) END.*/\1/p' "$folder/dom" | tail -1)
  expected='Two &lt;/script&gt;&lt;b&gt;layers&lt;/b&gt; | 0&gt;0 1&gt;0 1&gt;1 | 6 | 0&gt;0 0&gt;1 1&gt;0 1&gt;1 1&gt;2'
  expected+=' | 0&gt;0 0&gt;1 | query what looks at x (75 %), &lt;y&gt; (25 %), z (0.0 %)'
  expected+=' | query space gives 20 % to key &lt;y&gt; | 1'
  [[ $said == "$expected" ]] || fail "the page said: $said"
fi

helps FILE
refuses '' "$folder/none.json" "$page" '--nonsense'
wrong() { # NAME JSON: refused in one line, with exit 2
  echo "$2" > "$folder/$1.json"
  refuses "$folder/$1.json"
}
wrong text '"text"'
wrong no_title '{"layers": []}'
wrong no_layers '{"title": "t", "layers": []}'
wrong no_heads '{"title": "t", "layers": [{"name": "n", "queries": ["a"], "keys": ["b"], "heads": []}]}'
wrong short '{"title": "t", "layers": [{"name": "n", "queries": ["a"], "keys": ["b", "c"], "heads": [[[1]]]}]}'
wrong rows '{"title": "t", "layers": [{"name": "n", "queries": ["a", "b"], "keys": ["c"], "heads": [[[1]]]}]}'
wrong large '{"title": "t", "layers": [{"name": "n", "queries": ["a"], "keys": ["b"], "heads": [[[1.5]]]}]}'
wrong kind '{"title": "t", "layers": [{"name": "n", "queries": [1], "keys": ["b"], "heads": [[[1]]]}]}'
good='{"title": "t", "layers": [{"name": "n", "queries": ["a"], "keys": ["b"], "heads": [[[1]]]}]'
wrong deep "${good%\}}, \"more\": $(printf '[%.0s' {1..100000})$(printf ']%.0s' {1..100000})}"
grep -q 'must nest at most 20 deep' "$folder/bad" || fail "deep: $(cat "$folder/bad")"
mkfifo "$folder/pipe.json"
refused 'is not a plain file' "$folder/pipe.json"
exit $failures
