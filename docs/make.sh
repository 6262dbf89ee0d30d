#!/bin/bash
# docs/make.sh BUILD: the site, in BUILD/docs/html. The programs that its pages tell of are built already; their numbers and
# pictures are made here, by running them.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(mkdir -p "$1/docs" && cd "$1" && pwd)
site=$build/docs
mathjax=${MATHJAX:-/usr/share/javascript/mathjax}

# ---- what it needs ----
missing=
command -v doxygen >/dev/null || missing="$missing doxygen"
command -v dot >/dev/null || missing="$missing graphviz"
command -v gnuplot >/dev/null || missing="$missing gnuplot-nox"
[ -e "$mathjax/MathJax.js" ] || missing="$missing libjs-mathjax"
python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
if [ -n "$missing" ]; then
  # shellcheck disable=SC2086
  ./apt.sh $missing || {
    echo "docs: missing:$missing (Debian's names; MathJax 2 may lie elsewhere: MATHJAX=folder)" >&2
    exit 1
  }
fi
venv=$build/docs-venv
if ! cmp -s docs/requirements.txt "$venv/requirements.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check -r docs/requirements.txt
  cp docs/requirements.txt "$venv/"
fi

# ---- pages, and what the programs say and draw ----
source=$site/source
rm -rf "$source" "$site/html" "$site/doxygen"
mkdir -p "$source/_static/mathjax" "$source/generated" "$site/doxygen"
cp -r docs/. "$source"
ln -s "$PWD" "$source/code"
for part in MathJax.js config/TeX-AMS_SVG.js jax/element jax/input/TeX jax/output/SVG extensions/TeX extensions; do
  mkdir -p "$source/_static/mathjax/$(dirname $part)"
  [ -e "$source/_static/mathjax/$part" ] || cp -rL "$mathjax/$part" "$source/_static/mathjax/$part"
done
rm -rf "$source"/_static/mathjax/jax/output/SVG/fonts/[!T]* # the other fonts

mkdir -p "$site/generated"
cd "$site/generated" # so that they name their files without a path
export LC_ALL=C.UTF-8
run() { # run PROGRAM ARGS...: what it prints goes to its NAME.txt, unless that is newer than the program
  local name
  name=$(basename "$1")
  [ "$name.txt" -nt "$1" ] && return
  "$@" >"$name.new" 2>"$name.err" || { echo "docs: $* failed:" >&2; cat "$name.new" "$name.err" >&2; exit 1; }
  sed '/^  \.\/[a-z_]*\.[a-z]*$/d; /^wrote \.\//d' "$name.new" >"$name.txt" # the names of its files are left out
}
for program in "$build"/docs/programs/*; do
  if [ -x "$program" ] && [ -f "$program" ]; then run "$program"; fi
done
bash "$OLDPWD/tests/programs/support/mpirun.sh" -n 4 "$build/docs/programs/data_parallel" >data_parallel_ranks.txt 2>&1 ||
  echo "(this site was built without MPI)" >data_parallel_ranks.txt
for example in attention_cues attention_scoring nw_regression positional_encoding translate seeing_the_tape; do
  run "$build/examples/$example" --out . --quiet --quick
done
run "$build/examples/multihead_attention" --out . --quiet
run "$build/examples/sequence_models" --out . --quiet --quick --any-time
dot -Tsvg -Grankdir=LR tape_from_inside.dot -o tape_from_inside.svg
"$build/examples/attention_view" translate_attention.json --out . >attention_view.txt
cp attention_view.html "$source/_static"
python3 "$OLDPWD/docs/benchmarks.py" "$build/bench" .
cp ./*.txt ./*.svg ./*.md "$source/generated"

# ---- the site ----
cd "$OLDPWD"
(cat docs/Doxyfile && echo "OUTPUT_DIRECTORY = $site/doxygen") | doxygen - 2>"$site/doxygen/warnings"
sed -i '/<derivedcompoundref/d' "$site"/doxygen/xml/*.xml # a list of all modules is no help
"$venv/bin/sphinx-build" -q -j auto -W -b html "$source" "$site/html"
echo "docs: $site/html/index.html"
