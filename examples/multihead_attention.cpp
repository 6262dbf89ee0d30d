// Multi-head attention learns to look things up. A set of pairs (key, value), drawn at random, is given, and one of its
// keys is asked for: the answer is the value beside it. The pairs are new in every question, so no value belongs to a
// key for good: a net has to find the key among those that are there, and to return what is paired with it.
//
// The same net with average pooling in place of attention sees the question and every value, but not which value stands
// beside which key. It can do no better than name any value of the set: right once in n.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/threads.hpp"
#include "examples/support/attention_maps.hpp"
#include "examples/support/csv.hpp"
#include "examples/support/program.hpp"
#include "examples/support/show.hpp"
#include "nn/attention.hpp"
#include "nn/embedding.hpp"
#include "optim/adam.hpp"

using namespace tapegrad;
using examples::add_number, examples::draw, examples::expect, examples::show, examples::text;
using Numbers = std::vector<double>;

namespace {

struct Options {
  std::size_t pairs = 8;
  std::size_t heads = 4;
  std::size_t steps = 0;  // 0: 3000, or 300 with --quick
};

constexpr std::size_t kWords = 32;  // that there are for keys, and as many for values
constexpr std::size_t kSize = 64;   // of an embedding
constexpr std::size_t kSets = 32;   // in a step of training
constexpr double kRate = 0.002;     // falls to 0 over the training

// ---- the task -------------------------------------------------------------------------------------------------------

/// B sets of n pairs, every key asked for once: words of keys and values (B,n), of which the values are also the
/// answers to the keys in the order in which they stand.
struct Questions {
  Index keys, values;
};

/// Keys and values of a set are all different. 32 words make over 10^18 sets of 8 pairs: none comes twice.
Questions ask(std::size_t sets, std::size_t pairs, Rng& rng) {
  Questions drawn{Index(Shape{sets, pairs}), Index(Shape{sets, pairs})};
  for (std::size_t set = 0; set < sets; ++set) {
    std::copy_n(rng.permutation(kWords).begin(), pairs, drawn.keys.data() + set * pairs);
    std::copy_n(rng.permutation(kWords).begin(), pairs, drawn.values.data() + set * pairs);
  }
  return drawn;
}

// ---- the nets -------------------------------------------------------------------------------------------------------

/// Embeds words, pools the values for each key that is asked for, and scores every word as the answer.
class Retriever : public nn::Module {
 public:
  /// Pools by attention with that many heads; by the average for 0 heads.
  Retriever(std::size_t heads, Rng& rng)
      : asked(child<nn::Embedding>("asked", kWords, kSize, rng)),
        keys(child<nn::Embedding>("keys", kWords, kSize, rng)),
        values(child<nn::Embedding>("values", kWords, kSize, rng)),
        out(child<nn::Linear>("out", kSize, kWords, rng)) {
    if (heads == 0) return;
    attention = std::make_unique<nn::MultiHeadAttention>(kSize, heads, rng);
    child("attention", *attention);
  }

  /// Logits (B,n,words) of the answers.
  Tensor operator()(const Questions& questions) {
    const Tensor q = asked(questions.keys);  // (B,n,kSize), as k and v
    const Tensor k = keys(questions.keys);
    const Tensor v = values(questions.values);
    const Tensor pooled = attention ? (*attention)(q, k, v) : mean(v, 1, true);
    return out(q + pooled);
  }

  nn::Embedding asked, keys, values;
  nn::Linear out;
  std::unique_ptr<nn::MultiHeadAttention> attention;  // null: average pooling
};

/// Returns the loss of each step, a cross-entropy in nats (ln n for any value of the set), on sets that were not there
/// before.
Numbers train(Retriever& net, const std::string& name, const Options& options, Rng& rng, bool quiet) {
  optim::Adam optimizer(net.parameters(), {.learning_rate = kRate});
  examples::Progress progress(name, options.steps, quiet);
  Numbers losses;
  for (std::size_t step = 1; step <= options.steps; ++step) {
    const Questions questions = ask(kSets, options.pairs, rng);
    Tape tape;
    const Tensor loss = cross_entropy(net(questions), questions.values);
    losses.push_back(loss.item());
    tape.backward(loss);
    optimizer.set_learning_rate(kRate * (1 - static_cast<double>(step) / static_cast<double>(options.steps)));
    optimizer.step();
    optimizer.zero_grad();
    if (step % (options.steps / 5) == 0) {
      progress.print(text("  %s: step %zu, loss %.3g", name.c_str(), step, losses.back()));
    }
    progress.update(step, {.loss = losses.back()});
  }
  return losses;
}

/// How many of the answers are right.
double accuracy(Retriever& net, const Questions& questions) {
  const Index found = argmax(net(questions), 2);
  const auto right = std::inner_product(found.begin(), found.end(), questions.values.begin(), 0, std::plus(),
                                        [](auto a, auto b) { return a == b ? 1 : 0; });
  return right / static_cast<double>(found.size());
}

// ---- what it shows --------------------------------------------------------------------------------------------------

void show_losses(const Numbers& attention, const Numbers& average, std::size_t pairs, const std::string& out) {
  Numbers steps(attention.size());
  std::iota(steps.begin(), steps.end(), 1);
  examples::write_csv(out + "/multihead_losses.csv", {"step", "attention", "average_pooling"},
                      {steps, examples::rounded(attention), examples::rounded(average)});
  examples::Panel panel{"",
                        "steps of training",
                        "cross-entropy in nats",
                        {{"multi-head attention", steps, attention}, {"average pooling", steps, average}},
                        {{false, std::log(static_cast<double>(pairs)), text("ln %zu: any value of the set", pairs)}}};
  panel.log_x = true;
  show("\n" + examples::terminal_plot(panel) + "  " + out + "/multihead_losses.csv");
  draw(examples::Figure{"Learning to return the value beside a key", {panel}}, out + "/multihead_training");
}

/// One map per head and set: rows are keys that are asked for, columns are keys that are there, and what is right is
/// the diagonal.
void show_heads(Retriever& net, const Options& options, Rng& rng, const std::string& out) {
  const std::size_t n = options.pairs, heads = options.heads, sets = 2;
  const Questions questions = ask(sets, n, rng);
  net.attention->keep_weights();
  net(questions);
  net.attention->keep_weights(false);
  const Real* weights = net.attention->attention_weights().value().data();  // (sets,heads,n,n)
  examples::HeatMaps figure{"What each head looks at, in two sets that are new to the net", "attention weight", {}, 0};
  figure.columns = heads == 1 ? sets : std::min<std::size_t>(heads, 4);
  Numbers on_right(heads);
  std::vector<examples::AttentionMaps> saved(sets);
  for (std::size_t map = 0; map < sets * heads; ++map, weights += n * n) {
    const std::size_t set = map / heads, head = map % heads;
    examples::HeatMap drawn{
        text("set %zu, head %zu", set + 1, head + 1), "key", "asked for", n, n, {weights, weights + n * n}, {}, {}};
    for (std::size_t i = 0; i < n; ++i) {
      on_right[head] += weights[i * n + i] / static_cast<double>(n * sets);
      drawn.row_ticks.push_back(std::to_string(questions.keys.data()[set * n + i]));
    }
    drawn.column_ticks = drawn.row_ticks;
    if (head == 0) {
      saved[set] = {
          text("set %zu", set + 1), drawn.row_ticks, drawn.row_ticks, heads, {weights, weights + heads * n * n}};
    }
    figure.maps.push_back(drawn);
  }
  show(text("\nattention weight on the pair asked for, mean of two sets (all pairs alike: %.3f)", 1.0 / double(n)));
  for (std::size_t head = 0; head < heads; ++head) show(text("  head %zu: %.3f", head + 1, on_right[head]));
  draw(figure, out + "/multihead_heads");
  examples::save_attention("What each head looks at when keys are asked for", saved, out + "/multihead_attention.json");
  show("  " + out + "/multihead_attention.json");
}

/// Sets of several sizes, all unseen. Throws unless, at the size of training, attention is right at least as often as
/// `bar` says, and average pooling no more often than chance.
void show_accuracy(Retriever& attention, Retriever& average, std::size_t pairs, double bar, Rng& rng) {
  constexpr std::size_t asked = 4000;
  show("\nright answers on sets that neither was trained on");
  show("  pairs   questions   attention   average pooling    chance");
  std::vector<std::size_t> sizes{2, 4, 8, 16, 32};
  if (std::count(sizes.begin(), sizes.end(), pairs) == 0) sizes.push_back(pairs);
  std::sort(sizes.begin(), sizes.end());
  std::string failure;
  for (const std::size_t n : sizes) {
    const Questions unseen = ask(asked / n, n, rng);
    const double right = accuracy(attention, unseen), by_average = accuracy(average, unseen);
    const double count = static_cast<double>(unseen.keys.size()), chance = 1 / static_cast<double>(n);
    show(text("  %5zu %11.0f %9.2f %% %15.2f %% %7.2f %%%s", n, count, 100 * right, 100 * by_average, 100 * chance,
              n == pairs ? "   the size of training" : ""));
    if (n != pairs) continue;
    const double bound = chance + 5 * std::sqrt(chance * (1 - chance) / count);
    if (!(right >= bar)) failure = text("attention is right in at least %g %% of %zu pairs", 100 * bar, n);
    if (!(by_average <= bound)) failure = text("average pooling is right in at most %.2f %%", 100 * bound);
    show(text("          needed: at least %g %%, at most %.2f %% (chance and 5 standard errors)", 100 * bar,
              100 * bound));
  }
  expect(failure.empty(), failure);
}

void job(const examples::Common& common, Options options) {
  examples::prepare_output_folder(common.out);
  if (options.steps == 0) options.steps = common.quick ? 300 : 3000;
  set_threads(1);  // products as small as these take longer on several
  Rng rng(common.seed);
  Retriever attention(options.heads, rng), average(0, rng);
  show(text("%zu pairs, of %zu keys and %zu values; %zu steps of %zu sets, each asked for all its keys", options.pairs,
            kWords, kWords, options.steps, kSets));
  show(text("parameters: %zu with %zu heads of attention, %zu with average pooling", attention.parameter_count(),
            options.heads, average.parameter_count()));
  const Numbers losses = train(attention, "attention", options, rng, common.quiet);
  const Numbers average_losses = train(average, "average pooling", options, rng, common.quiet);
  show_losses(losses, average_losses, options.pairs, common.out);
  show_heads(attention, options, rng, common.out);
  show_accuracy(attention, average, options.pairs, common.quick ? 0.9 : 0.99, rng);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return examples::run(
      argc, argv, "multihead_attention",
      "Multi-head attention learns to return the value beside a key; average pooling can't.",
      [&](CLI::App& app) {
        add_number(app, "--pairs", options.pairs, 4, 32, "in a set, 4 to 32")->capture_default_str();
        app.add_option("--heads", options.heads, "of attention: 1, 2, 4 or 8")
            ->check(examples::decimal, "")
            ->check(CLI::IsMember({1, 2, 4, 8}))
            ->capture_default_str();
        add_number(app, "--steps", options.steps, 10, 1000000, "of training [3000; 300 with --quick]");
      },
      [&](const examples::Common& common) { job(common, options); });
}
