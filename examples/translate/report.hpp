// What the net has learned: scores, examples, and what each head looks at.
#pragma once

#include "examples/support/attention_maps.hpp"
#include "examples/support/training.hpp"
#include "examples/translate/decode.hpp"
#include "examples/translate/score.hpp"

namespace translate {

using examples::draw, examples::show, examples::text;

inline void show_training(const examples::Training& training, const std::string& out) {
  training.write_log(out + "/translate_log.csv", "");
  const std::vector<double>& losses = training.losses;
  std::vector<double> steps(losses.size());
  std::iota(steps.begin(), steps.end(), 1);
  examples::Panel panel{"", "steps of training", "cross-entropy of a token in nats", {{"", steps, losses}}, {}};
  panel.log_x = true;
  panel.log_y = *std::min_element(losses.begin(), losses.end()) > 0;
  show(examples::terminal_plot(panel) + "  " + out + "/translate_log.csv");
  draw(examples::Figure{"Learning to translate", {panel}}, out + "/translate_training");
}

/// Translates the test, prints the scores and some examples, writes all to a table. Returns percent of exact ones, or
/// nothing when Ctrl-C has ended it.
inline std::optional<double> show_scores(Translator& net, const Corpus& corpus, std::size_t longest, std::size_t beam,
                                         const std::string& out) {
  const char* const between = corpus.by_words ? " " : "";
  std::vector<Tokens> sources;
  for (const Pair& pair : corpus.test) sources.push_back(pair.source);
  const examples::Interrupt interrupt;
  const std::vector<Tokens> found = translations(net, corpus, sources, longest, beam, [&] { return interrupt.came(); });
  if (found.size() < sources.size()) return {};
  std::string table = "source,target,translation,bleu\n";
  double sum = 0;
  std::size_t exact = 0, wrong_shown = 0;
  show(text("\n%zu %s, %s", found.size(), corpus.unseen ? "that were not trained on" : "that were trained on",
            beam == 1 ? "greedy" : text("beam of %zu", beam).c_str()));
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Pair& pair = corpus.test[i];
    const double score = bleu(found[i], pair.target, 2);
    const bool right = found[i] == pair.target;
    const std::string source = joined(pair.source, between), target = joined(pair.target, between),
                      translation = joined(found[i], between);
    sum += score;
    exact += right;
    table += examples::csv_field(source) + "," + examples::csv_field(target) + "," + examples::csv_field(translation) +
             "," + examples::csv_number(score) + "\n";
    if (i < 8 || (!right && ++wrong_shown <= 4)) {
      show("  " + source + " => " + translation + (right ? "" : "   (wrong: " + target + ")"));
    }
  }
  const auto count = static_cast<double>(found.size());
  const double percent = 100 * static_cast<double>(exact) / count;
  show(text("exact %.1f %% (%zu of %zu), BLEU %.4f (mean, of 1- and 2-grams)", percent, exact, found.size(),
            sum / count));
  examples::write_file(out + "/translate_test.csv", table);
  show("  " + out + "/translate_test.csv");
  return percent;
}

/// One figure, a row of maps for each layer, with a map for each head. Rows are queries, columns keys. The maps are
/// added to `saved` too.
inline void draw_heads(const std::string& title, const std::vector<nn::Attention*>& layers, const Tokens& queries,
                       const Tokens& keys, const std::string& xlabel, const std::string& ylabel,
                       const std::string& path, std::vector<examples::AttentionMaps>& saved) {
  examples::HeatMaps figure{title, "attention weight", {}, 0};
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const Tensor weights = layers[layer]->attention_weights();  // (1,heads,queries,keys)
    const Real* number = weights.value().data();
    figure.columns = weights.extent(1);
    saved.push_back({text("%s, layer %zu", title.c_str(), layer + 1),
                     queries,
                     keys,
                     weights.extent(1),
                     {number, number + weights.size()}});
    for (std::size_t head = 0; head < weights.extent(1); ++head, number += queries.size() * keys.size()) {
      figure.maps.push_back({text("layer %zu, head %zu", layer + 1, head + 1),
                             xlabel,
                             ylabel,
                             queries.size(),
                             keys.size(),
                             {number, number + queries.size() * keys.size()},
                             queries,
                             keys});
    }
  }
  draw(figure, path);
}

/// Attention in every layer and head while the net translates one text of the test.
inline void show_heads(Translator& net, const Corpus& corpus, std::size_t longest, const std::string& out) {
  const std::size_t least =
      corpus.by_words ? 4 : 11;  // dates with a month's name; no more than has room for its labels
  const auto fit = [&](const Pair& pair) { return pair.source.size() >= least && pair.source.size() <= 12; };
  const auto example = std::find_if(corpus.test.begin(), corpus.test.end(), fit);
  const Pair& pair = example == corpus.test.end() ? corpus.test.front() : *example;
  const Batch batch = batch_of({{pair.source, translations(net, corpus, {pair.source}, longest, 1)[0]}}, corpus);
  std::vector<nn::Attention*> encoder, decoder, cross;
  for (std::size_t i = 0; i < net.transformer.encoder.layers.size(); ++i) {
    encoder.push_back(&net.transformer.encoder.layers[i].self_attn);
    decoder.push_back(&net.transformer.decoder.layers[i].self_attn);
    cross.push_back(&net.transformer.decoder.layers[i].multihead_attn);
  }
  const auto keep = [&](bool kept) {
    for (const auto* layers : {&encoder, &decoder, &cross}) {
      for (nn::Attention* attention : *layers) attention->keep_weights(kept);
    }
  };
  keep(true);
  net.eval();
  net(batch);
  net.train();
  keep(false);
  const auto ticks = [](const Vocabulary& vocabulary, const Index& ids) {
    Tokens tokens = vocabulary.tokens({ids.begin(), ids.end()});
    for (std::string& token : tokens) token = token == " " ? "space" : token;
    return tokens;
  };
  const Tokens source = ticks(corpus.source, batch.source), before = ticks(corpus.target, batch.input),
               written = ticks(corpus.target, batch.labels);
  show("\nattention while it translates '" + joined(pair.source, corpus.by_words ? " " : "") + "'");
  std::vector<examples::AttentionMaps> saved;
  draw_heads("Encoder self-attention", encoder, source, source, "looked at", "source", out + "/translate_encoder_self",
             saved);
  draw_heads("Decoder self-attention", decoder, written, before, "written before", "written next",
             out + "/translate_decoder_self", saved);
  draw_heads("Cross-attention", cross, written, source, "source", "written next", out + "/translate_cross", saved);
  examples::save_attention("Attention while it translates '" + joined(pair.source, corpus.by_words ? " " : "") + "'",
                           saved, out + "/translate_attention.json");
  show("  " + out + "/translate_attention.json");
}

}  // namespace translate
