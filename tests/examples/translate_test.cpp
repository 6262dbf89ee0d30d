#include <set>

#include "examples/translate/dates.hpp"
#include "examples/translate/decode.hpp"
#include "examples/translate/pairs.hpp"
#include "examples/translate/score.hpp"
#include "tests/catch.hpp"

using namespace translate;

namespace {

constexpr std::int64_t a = 4, b = 5, words_ = 6;

/// A net whose next token depends on the last one only: its row of the table has the probabilities, but for a factor.
struct Table {
  std::map<std::int64_t, std::vector<double>> rows;

  Tensor scores(const Index& tokens) const {
    Array result = empty_array({tokens.size(), std::size_t(words_)});
    Real* score = result.data();
    for (const std::int64_t token : tokens) {
      for (const double weight : rows.at(token)) *score++ = static_cast<Real>(std::log(weight));
    }
    return result;
  }
  void keep(const Index&) {}

  /// The logarithm of a translation's probability among those without padding and start.
  double log_probability(Ids ids) const {
    ids.push_back(Vocabulary::end);
    double sum = 0;
    std::int64_t last = Vocabulary::start;
    for (const std::int64_t id : ids) {
      const std::vector<double>& row = rows.at(last);
      sum += std::log(row[std::size_t(id)] / (row[2] + row[3] + row[4] + row[5]));
      last = id;
    }
    return sum;
  }
};

}  // namespace

TEST_CASE("a beam finds the better translation behind the less likely first token", "[translate]") {
  const Table table{{{Vocabulary::start, {1e-9, 1e-9, 1e-9, 1e-9, 0.6, 0.4}},
                     {a, {1e-9, 1e-9, 0.34, 1e-9, 0.33, 0.33}},
                     {b, {1e-9, 1e-9, 0.9, 1e-9, 0.05, 0.05}}}};
  CHECK(greedy(Table(table), 1, 5) == std::vector<Ids>{{a}});
  CHECK(beam_search(Table(table), 5, 1) == Ids{a});
  CHECK(beam_search(Table(table), 5, 2) == Ids{b});
  CHECK(table.log_probability({b}) > table.log_probability({a}) + 0.5);
}

TEST_CASE("a beam that holds everything is never worse than greedy", "[translate]") {
  Rng rng(1);
  int ended = 0, better = 0;
  for (int i = 0; i < 50; ++i) {
    Table table;
    for (std::int64_t token = 0; token < words_; ++token) {
      for (int k = 0; k < words_; ++k) table.rows[token].push_back(0.01 + rng.uniform());
    }
    const auto score = [&](const Ids& ids) {
      return table.log_probability(ids) / std::pow(static_cast<double>(ids.size() + 1), 0.75);
    };
    const Ids quick = greedy(table, 1, 4)[0], best = beam_search(table, 4, 2000);
    if (quick.size() == 4) continue;  // not ended
    ++ended;
    CHECK(score(best) >= score(quick) - 1e-6);
    better += score(best) > score(quick) + 1e-6;
  }
  CHECK(ended > 10);
  CHECK(better > 5);
}

TEST_CASE("padding and the start are never written", "[translate]") {
  const std::vector<double> row{0.5, 0.4, 0.01, 1e-9, 0.06, 0.03};
  Table table;
  for (std::int64_t token = 0; token < words_; ++token) table.rows[token] = row;
  CHECK(greedy(table, 2, 3) == std::vector<Ids>(2, {a, a, a}));
  for (const std::int64_t token : beam_search(table, 3, 3)) CHECK(token >= Vocabulary::unknown);
}

TEST_CASE("BLEU is D2L's", "[translate]") {
  const auto score = [](const char* found, const char* reference, std::size_t k = 2) {
    return bleu(words(found), words(reference), k);
  };
  CHECK(score("a b c", "a b c") == Approx(1));
  CHECK(score("a b", "a b c") == Approx(std::exp(-0.5)));  // too short
  CHECK(score("a b c", "a b") == Approx(std::sqrt(2. / 3) * std::pow(0.5, 0.25)));
  CHECK(score("a b c d", "a b x d") == Approx(std::sqrt(0.75) * std::pow(1. / 3, 0.25)));
  CHECK(score("a a", "a b", 1) == Approx(std::sqrt(0.5)));  // an n-gram counts as often as the reference has it
  CHECK(score("a", "a", 2) == Approx(1));
  CHECK(score("", "a") == 0);
}

TEST_CASE("scores that are not finite are no translation", "[translate]") {
  CHECK_THROWS_AS(of_words(Tensor{{0, 1, 2, 3, std::numeric_limits<Real>::infinity()}}), std::runtime_error);
}

TEST_CASE("no date of the test is trained on, and each form is another", "[translate]") {
  const Corpus corpus = date_corpus(3);
  std::set<Tokens> test, drawn;
  for (const Pair& pair : corpus.test) test.insert(pair.target);
  CHECK(test.size() == kTestDates);
  Rng rng(4);
  for (const Pair& pair : corpus.draw(0, 200'000, rng)) drawn.insert(pair.target);
  CHECK(drawn.size() > 60'000);
  for (const Tokens& date : test) REQUIRE(!drawn.contains(date));
  std::set<std::string> forms;
  for (std::size_t form = 0; form < kForms; ++form) {
    forms.insert(written(Date(std::chrono::year(1987) / 11 / 5), form));
  }
  CHECK(forms.size() == kForms);
}

TEST_CASE("texts are prepared as D2L's, and rare words are unknown", "[translate]") {
  CHECK(words("Où EST-il\u202F? 3.5\u00A0Ça,") == Tokens{"où", "est-il", "?", "3", ".5", "ça", ","});
  const std::vector<Pair> pairs{{{"a", "b"}, {}}, {{"a"}, {}}};
  CHECK(frequent(pairs, &Pair::source, 2).ids({"a", "b"}) == Ids{4, Vocabulary::unknown});
}
