#!/usr/bin/env bash
# The benchmark's programs as a user runs them: what they list, one quick row, what they refuse, and no rival at all.
source "$(dirname "$0")/support/run.sh" "$1/benchmarks/bench_train"
compare=$2/benchmarks/compare.py
growth=$2/benchmarks/growth.py
scaling=$2/benchmarks/scaling.py
build=$1

refused() { # in one line, on stderr alone
  expect 2 "$@"
  [ ! -s stdout ] || fail "$*: something on stdout"
}

expect 0 "$program" --list
[ "$(wc -l <stdout)" = 16 ] || fail "--list: not 16 workloads"
for name in nw_step tiny_1000ops mha_long gpt_mid_fwd softmax_4096x512 gemm_1024; do
  grep -q "^$name " stdout || fail "--list: no $name"
done
expect 0 "$program" --help
refused "$program" no_such_row
grep -q no_such_row stderr || fail "the unknown workload is not named"
refused "$program" --threads 0
refused "$program" --seconds x
refused "$program" attention:1,2,3,2

expect 0 "$build/benchmarks/bench_scaling" --sums --times 1 # one rank has nothing to sum
grep -q '^{"ranks": 1, "bytes": 67108864, "s": ' stdout || fail "no sum of 64 MiB"
refused "$build/benchmarks/bench_scaling" --times 0

quick=(--windows 2 --seconds 0.005)
expect 0 "$program" --json "${quick[@]}" --threads 2 nw_step mha_d2l
if command -v python3 >/dev/null; then
  python3 - <<'END' || fail "not a JSON object for each row"
import json
rows = [json.loads(line) for line in open("stdout")]
assert [row["workload"] for row in rows] == ["nw_step", "mha_d2l"]
assert all(row["threads"] == 2 and row["mib"] >= 0 and 0 < row["s"] <= row["median"] < 1 and row["cpu"] > 0 for row in rows)
END

  # Without the rivals: they are named, and our figures are there.
  expect 0 python3 "$compare" --build "$build" --python "$work/none" --out bench --rows nw_step --rounds 2 "${quick[@]}"
  grep -q '^PyTorch is left out' stderr && grep -q '^JAX is left out' stderr || fail "missing rivals are not named"
  grep -q '^nw_step' stdout || fail "no row"
  python3 - <<'END' || fail "bench.json does not say what was measured"
import json
report = json.load(open("bench/bench.json"))
assert report["cpu"] and len(report["missing"]) == 2
assert all(len(row["contenders"]["tapegrad"]["runs"]) == 2 and row["ratio"] is None for row in report["rows"])
assert report["gb_s"]["copy_4096x512"] > 0
END
  expect 0 python3 "$growth" --build "$build" --python "$work/none" --out bench --curves tape --rounds 1
  python3 - <<'END' || fail "growth.json: the tape's overhead is not linear"
import json
tape = json.load(open("bench/growth.json"))["curves"]["tape"]
assert tape["at"][0] == 1000 and len(tape["series"]["tapegrad"]) == len(tape["at"])
assert 0.5 < tape["exponent_at_the_end"]["tapegrad"] < 1.5
END

  refused python3 "$scaling" --build "$work/no_such_folder"
  refused python3 "$scaling" --build "$build" --times 0
  refused python3 "$growth" --build "$build" --curves no_such_curve
  refused python3 "$compare" --build "$build" --rows no_such_row
  refused python3 "$compare" --build "$work/no_such_folder"
  expect 0 python3 "$compare" --help
fi
echo "bench: all as expected"
