#!/usr/bin/env bash
# The program nw_regression as a user runs it: results, pictures, the user's own table, and what it refuses.
source "$(dirname "$0")/support/run.sh" "$1/examples/nw_regression"
source_root=$2

run() { expect "$1" "$program" "${@:2}"; }

losses() { sed -n 's/^epoch [0-9]*, loss //p' stdout; }

# error COLUMN NAME: a number of the table of errors; column 1 is "left out".
error() { awk -v column="$1" -v name="  $2" 'index($0, name) == 1 { sub(/.*[a-z)]  +/, ""); print $column }' stdout; }

below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a + 0 < b + 0) }'; }

check_pictures() {
  local picture
  for picture in estimators loss attention; do
    [ "$(head -c 8 "$1/$picture.png" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] || fail "$picture.png is no PNG"
    grep -q '</svg>' "$1/$picture.svg" || fail "$picture.svg is not a whole SVG"
  done
}

have_gnuplot=false
if command -v "${GNUPLOT:-gnuplot}" >/dev/null; then have_gnuplot=true; fi

# The textbook's data.
run 0 --quick --out first
[ "$(losses | wc -l)" = 20 ] || fail "--quick: not 20 epochs"
[ "$(grep -cE '^epoch [0-9]+, loss [0-9]+\.[0-9]{6}$' stdout)" = 20 ] || fail "the form of the loss lines"
below "$(losses | tail -1)" "$(losses | head -1)" || fail "the loss did not fall"
below "$(error 1 parametric)" "$(error 1 non-parametric)" || fail "trained weights are not better than the kernel"
below "$(error 1 non-parametric)" "$(error 1 average)" || fail "the kernel is not better than the average"
below "$(error 2 parametric)" "$(error 2 average)" || fail "trained weights are not nearer the truth than the average"
grep -q 'first 49 training points' stdout || fail "it does not say which points it predicts from"
[ "$(wc -l <first/predictions.csv)" = 61 ] || fail "predictions.csv: not 60 rows below a header"
[ "$(sed -n 61p first/predictions.csv | cut -d, -f1)" = 5.9 ] || fail "predictions.csv does not end at x = 5.9"
[ "$(wc -l <first/left_out.csv)" = 51 ] || fail "left_out.csv: not 50 rows below a header"
if $have_gnuplot; then check_pictures first; fi
sed 's|first/|second/|g' stdout >first.txt

# The same seed, the same output; another seed, another.
run 0 --quick --out second --seed 0
diff first.txt stdout >/dev/null || fail "the same seed gave another output"
diff first/predictions.csv second/predictions.csv >/dev/null || fail "the same seed gave other predictions"
run 0 --quick --out second --seed 1
if diff first/predictions.csv second/predictions.csv >/dev/null; then fail "--seed changes nothing"; fi

# Without gnuplot: it says so, and writes the pictures' data.
GNUPLOT=/none run 0 --quick --out bare --epochs 3
grep -q 'gnuplot is not installed' stderr || fail "a missing gnuplot is not told"
for picture in estimators loss attention; do
  [ -s "bare/$picture.csv" ] || fail "without gnuplot, $picture.csv is missing"
done
[ "$(losses | wc -l)" = 3 ] || fail "--epochs 3: not 3 epochs"

# Other kernels, and one shared width.
export GNUPLOT=/none  # quicker
run 0 --quick --out bare --kernel constant
[ "$(error 1 non-parametric)" = "$(error 1 average)" ] || fail "the constant kernel is not average pooling"
run 0 --quick --out bare --kernel epanechnikov --width 0.5
right=$(error 1 non-parametric)
run 0 --quick --out bare --kernel epanechikov --width 0.5
[ "$(error 1 non-parametric)" = "$right" ] || fail "the book's spelling is not taken"
run 0 --quick --out bare --kernel boxcar --width 0.01
grep -q 'no prediction (nan)' stdout || fail "points without a key in reach are not told"
run 0 --quick --out bare --shared-width
grep -q '^learned width' stdout || fail "--shared-width: not one width"

# The user's own table.
run 0 --csv "$source_root/examples/data/cars.csv" --out cars
[ "$(losses | wc -l)" = 100 ] || fail "cars: not 100 epochs"
[ "$(error 1 average)" = 26.031 ] || fail "cars: average pooling's left-out error is not 26.031"  # n/(n-1) deviations
below "$(error 1 non-parametric)" 17 || fail "cars: the kernel's left-out error is not below 17"
below "$(error 1 parametric)" 17 || fail "cars: the trained left-out error is not below 17"
grep -q '^learned width 1' stdout || fail "cars: not one width"
if grep -q ' $' stdout; then fail "cars: blanks at a line's end"; fi
head -1 cars/predictions.csv | grep -q '^speed,' || fail "cars: predictions.csv has no column speed"
awk -F, 'NR > 1 && ($1 < 4 || $1 > 25 || $3 < 2 || $3 > 120 || $4 < 2 || $4 > 120) { bad = 1 } END { exit bad }' \
  cars/predictions.csv || fail "cars: a prediction is outside the data"
[ "$(wc -l <cars/predictions.csv)" = 201 ] || fail "cars: predictions.csv: not four test points for each row"
if grep -qE '[0-9.]{13}' cars/predictions.csv cars/left_out.csv; then fail "cars: more digits than a float has"; fi
run 0 --csv "$source_root/examples/data/cars.csv" --x dist --y speed --out cars --quick
run 0 --csv "$source_root/examples/data/cars.csv" --per-position --out cars --quick
grep -q '^learned widths' stdout || fail "--per-position: one width"

# A step never raises the loss on a table, whatever the rate.
run 0 --csv "$source_root/examples/data/cars.csv" --learning-rate 1e6 --out cars --quick
losses | sort -c -g -r || fail "the loss rises on a table"

# A curve that goes up and down 55 times in 500 rows is sampled often enough to be seen.
awk 'BEGIN { print "t,y"; for (i = 0; i < 500; ++i) printf "%d,%.6f\n", i, sin(2 * 3.14159265 * 55 * i / 500) }' >sine.csv
run 0 --csv sine.csv --out sine
grep -q 'training points (50 of 500)' stdout || fail "it does not say that it draws 50 points of 500"
turns=$(awk -F, 'NR > 2 && ($4 > 0) != was { ++n } { was = $4 > 0 } END { print n }' sine/predictions.csv)
[ "$turns" -ge 105 ] && [ "$turns" -le 115 ] || fail "the sampled sine changes its sign $turns times, not 110"

# --quiet leaves the lines of epochs out.
run 0 --quick --quiet --out quiet
[ "$(losses | wc -l)" = 0 ] && grep -q '^after training' stdout || fail "--quiet: epochs are printed, or the result is not"

# Scales, orders and sizes that a table may have: the error must scale with y.
awk -F, 'NR > 1 { printf "%s;%s\n", $1 * 1e30, $2 * 1e-20 }' "$source_root/examples/data/cars.csv" | sort -r >scaled.csv
run 0 --csv scaled.csv --out scaled
[ "$(error 1 average)" = 2.6031e-19 ] || fail "the error of a scaled table"
below "$(error 1 parametric)" 1.7e-19 || fail "a scaled table is learned worse"
printf 'x\ty\n1\t2\n2\t4\n3\t9\n' >three.csv
run 0 --csv three.csv --out three
printf 'x,y\n1,7\n2,7\n2,7\n4,7\n' >constant.csv
run 0 --csv constant.csv --out constant
[ "$(error 1 parametric)" = 0 ] || fail "a constant y is not learned exactly"

# What is refused: exit code 2, one line, and what the output folder holds stays.
mkdir kept
echo earlier >kept/predictions.csv
refuse() {
  run 2 --out kept "$@"
  [ "$(cat kept/predictions.csv)" = earlier ] && [ "$(ls -A kept)" = predictions.csv ] || fail "$*: the folder changed"
}
cp "$source_root/examples/data/cars.csv" kept/predictions.csv
run 2 --out kept --csv kept/predictions.csv
diff "$source_root/examples/data/cars.csv" kept/predictions.csv || fail "a table is written over"
echo earlier >kept/predictions.csv
printf '' >empty.csv
printf 'x\n1\n2\n3\n' >one.csv
printf 'x,y\n1,2\n3,4\n' >two.csv
printf 'x,y\n1,2\n2,zwei\n3,4\n' >word.csv
printf 'x,y\n1,2\n2,3\n3,nan\n' >nan.csv
printf 'x,y\n1,2\n1,3\n1,4\n' >equal.csv
printf 'x,y\n-1e308,2\n0,3\n1e308,4\n' >wide.csv
awk 'BEGIN { for (i = 0; i < 4001; ++i) print i "," i % 7 }' >long.csv
for table in missing empty one two word nan equal wide long; do
  refuse --csv $table.csv
  grep -q "$table.csv" stderr || fail "$table.csv: the refusal does not name it"
done
refuse --csv word.csv && grep -q 'line 3' stderr || fail "a word among numbers: no line number"
refuse --csv nan.csv && grep -q 'line 4' stderr || fail "NaN: no line number"
refuse --csv three.csv --x z
refuse --csv three.csv --shared-width --per-position
refuse --x x
refuse --kernel triangle
for width in 0 -1 nan inf 1e-9 wide; do refuse --width $width; done
for epochs in 0 010 -1 1.5 many; do refuse --epochs $epochs; done
for rate in 0 -1 nan inf fast; do refuse --learning-rate $rate; done
refuse --seed -1
refuse --no-such-option
run 2 --out kept/predictions.csv
[ "$(cat kept/predictions.csv)" = earlier ] || fail "a file in the output folder's place was changed"
if [ "$(id -u)" != 0 ]; then
  mkdir locked
  chmod a-w locked
  run 2 --out locked
fi

# A failed job: exit code 1, one line, nothing written.
run 1 --out kept --learning-rate 1e30
grep -q 'epoch 2' stderr || fail "divergence: the epoch is not named"
run 1 --out kept --learning-rate 1e-30 --quick
[ "$(cat kept/predictions.csv)" = earlier ] && [ "$(ls -A kept)" = predictions.csv ] || fail "a failed job wrote"

run 0 --help
for option in csv x y kernel width shared-width per-position epochs learning-rate seed out quick; do
  grep -q -- "--$option" stdout || fail "--help does not show --$option"
done
echo "nw_regression: ok"
