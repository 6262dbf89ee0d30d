#include "autograd/random.hpp"
#include "tests/check.hpp"

using namespace tapegrad;

TEST_CASE("an embedding is the rows that the indices name, and its gradient adds up") {
  const Tensor weight{{1, 2}, {3, 4}, {5, 6}};
  check_close(embedding({2, 0, 2}, weight), Tensor{{5, 6}, {1, 2}, {5, 6}});
  check_close(embedding(Index({{0, 1}, {1, 1}}), weight), Tensor{{{1, 2}, {3, 4}}, {{3, 4}, {3, 4}}});
  check_close(embedding(Index(Shape{}, std::vector<int>{1}), weight), Tensor{3, 4});
  check_close(embedding(Index(Shape{2, 0}), weight), zeros({2, 0, 2}));
  const auto look_up = [](const Tensor& w) { return embedding({2, 0, 2}, w); };
  check_close(gradient_of(look_up, weight, Tensor{{1, 2}, {4, 8}, {16, 32}}), Tensor{{4, 8}, {0, 0}, {17, 34}});
}

// The padding row must stay as it is (PyTorch issues 26302 and 1812).
TEST_CASE("the padding row of an embedding gets no gradient of any order") {
  Rng rng(1);
  const Tensor weight(rng.normal({4, 2}));
  const auto padded = [](const Tensor& w) { return embedding({0, 1, 1, 3}, w, 0); };
  check_close(embedding({0, 1, 1, 3}, weight, 0), embedding({0, 1, 1, 3}, weight));
  check_close(gradient_of(padded, weight), Tensor{{0, 0}, {2, 2}, {0, 0}, {1, 1}});
  Array dy(Shape{4, 2}, Real(1));
  dy(0, 0) = kNaN;
  check_close(gradient_of(padded, weight, Tensor(dy)), Tensor{{0, 0}, {2, 2}, {0, 0}, {1, 1}});

  Tensor w = weight.detach().set_requires_grad();
  Tape tape;
  const Tensor first = tape.gradient(sum(square(padded(w))), {w}, {.create_graph = true})[0];
  check_close(first, Tensor(2) * weight * Tensor{{0}, {2}, {0}, {1}});
  check_close(tape.gradient(sum(first), {w})[0], Tensor(2) * ones({4, 2}) * Tensor{{0}, {2}, {0}, {1}});
}

TEST_CASE("embeddings differentiate twice") {
  Rng rng(2);
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{2, 1, 2}}) {
    Index index(shape);
    for (std::size_t i = 0; i < index.size(); ++i) index.data()[i] = static_cast<std::int64_t>(rng.below(3));
    check_gradients([=](const auto& xs) { return square(embedding(index, xs[0])); }, {Tensor(rng.normal({3, 4}))});
  }
}

TEST_CASE("indices without a row are refused, and nothing is recorded") {
  Tensor weight = zeros({4, 2}).set_requires_grad();
  Tape tape;
  check_refused(
      [&] {
        embedding({0, 4}, weight);
      },
      "[embedding] an index must be at least 0 and below the number of rows; got 4 and 4");
  check_refused([&] { embedding({-1}, weight); }, "[embedding] an index must be at least 0");
  check_refused([&] { embedding({0}, weight, 4); }, "[embedding] the padding must be one of the rows; got 4 and 4");
  check_refused([&] { embedding({0}, weight, -1); }, "[embedding] the padding");
  check_refused([&] { embedding({0}, zeros({4})); }, "[embedding] weight must be (V,D); got (4)");
  CHECK(tape.size() == 0);
}
