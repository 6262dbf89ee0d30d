#include "nn/embedding.hpp"

namespace TAPEGRAD::nn {

Embedding::Embedding(std::size_t count, std::size_t width, Rng& rng, std::optional<std::int64_t> padding)
    : padding_(padding) {
  require(count > 0 && width > 0, "Embedding", "the sizes must be positive", count, width);
  Array rows = rng.normal({count, width});
  if (padding) {
    require(*padding >= 0 && static_cast<std::uint64_t>(*padding) < count, "Embedding",
            "the padding must be one of the rows", *padding, count);
    std::fill_n(rows.data() + static_cast<std::size_t>(*padding) * width, width, Real(0));
  }
  weight = param("weight", std::move(rows));
}

}  // namespace TAPEGRAD::nn
