// Compares the library's ops with PyTorch's answers, kept as one case of JSON a line: the value, the gradients, and the
// gradients of the gradients.

#include <cmath>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <sstream>

#include "tests/parity/case.hpp"

namespace parity {
namespace {

using Op = std::function<Tensor(Case&)>;

/// A mask that broadcasts to (B,H,Q,K), with all four axes, as attention wants it.
Shape four_axes(Shape shape) {
  Shape padded(4 - std::min<std::size_t>(shape.size(), 4), 1);
  for (std::size_t extent : shape) padded.push_back(extent);
  return padded;
}

Tensor attention(Case& c) {
  AttentionOptions options{.causal = c.get<bool>("is_causal")};
  if (c.is_mask(3)) {
    const Mask mask = c.mask(3);
    options.mask = Mask(four_axes(mask.shape()), mask);
  } else if (c.count() > 3) {
    options.additive_mask = reshape(c.x(3), four_axes(c.x(3).shape()));
  }
  return scaled_dot_product_attention(c.x(0), c.x(1), c.x(2), options);
}

/// A lambda over the case c that returns the expression.
#define OP(...) [](Case& c) -> Tensor { return __VA_ARGS__; }

const std::map<std::string, Op>& ops() {
  static const std::map<std::string, Op> table = {
      {"neg", OP(-c.x(0))},
      {"exp", OP(exp(c.x(0)))},
      {"log", OP(log(c.x(0)))},
      {"log1p", OP(log1p(c.x(0)))},
      {"sqrt", OP(sqrt(c.x(0)))},
      {"square", OP(square(c.x(0)))},
      {"abs", OP(abs(c.x(0)))},
      {"sin", OP(sin(c.x(0)))},
      {"cos", OP(cos(c.x(0)))},
      {"tanh", OP(tanh(c.x(0)))},
      {"sigmoid", OP(sigmoid(c.x(0)))},
      {"softplus", OP(softplus(c.x(0)))},
      {"silu", OP(silu(c.x(0)))},
      {"relu", OP(relu(c.x(0)))},
      {"erf", OP(erf(c.x(0)))},
      {"gelu", OP(gelu(c.x(0)))},
      {"gelu_tanh", OP(gelu_tanh(c.x(0)))},
      {"clamp", OP(clamp(c.x(0), c.get<Real>("min"), c.get<Real>("max")))},

      {"add", OP(c.x(0) + c.x(1))},
      {"sub", OP(c.x(0) - c.x(1))},
      {"mul", OP(c.x(0) * c.x(1))},
      {"div", OP(c.x(0) / c.x(1))},
      {"pow", OP(pow(c.x(0), c.x(1)))},
      {"maximum", OP(maximum(c.x(0), c.x(1)))},
      {"minimum", OP(minimum(c.x(0), c.x(1)))},

      {"sum", OP(sum(c.x(0), c.axes(), c.keepdim()))},
      {"mean", OP(mean(c.x(0), c.axes(), c.keepdim()))},
      {"amax", OP(amax(c.x(0), c.axes(), c.keepdim()))},
      {"amin", OP(amin(c.x(0), c.axes(), c.keepdim()))},
      {"logsumexp", OP(logsumexp(c.x(0), c.axes(), c.keepdim()))},
      {"var", OP(var(c.x(0), c.axes(), c.get<Real>("correction"), c.keepdim()))},
      {"prod", OP(prod(c.x(0), c.axis(), c.keepdim()))},

      {"softmax", OP(softmax(c.x(0), c.axis()))},
      {"log_softmax", OP(log_softmax(c.x(0), c.axis()))},
      {"cumsum", OP(cumsum(c.x(0), c.axis()))},

      {"matmul", OP(matmul(c.x(0), c.x(1)))},
      {"bmm", OP(bmm(c.x(0), c.x(1)))},
      {"linear", OP(linear(c.x(0), c.x(1), c.count() > 2 ? c.x(2) : Tensor()))},
      {"conv1d", OP(conv1d(c.x(0), c.x(1), c.count() > 2 ? c.x(2) : Tensor(), c.get<std::ptrdiff_t>("stride"),
                           c.get<std::ptrdiff_t>("padding")))},

      {"reshape", OP(reshape(c.x(0), c.get<std::vector<std::ptrdiff_t>>("shape")))},
      {"permute", OP(permute(c.x(0), c.axes("axes")))},
      {"transpose", OP(transpose(c.x(0), c.get<int>("axis0"), c.get<int>("axis1")))},
      {"unsqueeze", OP(unsqueeze(c.x(0), c.axis()))},
      {"squeeze", OP(squeeze(c.x(0), c.axis()))},
      {"broadcast_to", OP(broadcast_to(c.x(0), c.shape()))},
      {"repeat", OP(repeat(c.x(0), c.get<std::vector<std::size_t>>("repeats")))},
      {"repeat_interleave", OP(c.is_null("axis") ? repeat_interleave(c.x(0), c.get<std::size_t>("repeats"))
                                                 : repeat_interleave(c.x(0), c.get<std::size_t>("repeats"), c.axis()))},
      {"concat", OP(concat(c.all(), c.axis()))},
      {"stack", OP(stack(c.all(), c.axis()))},
      {"slice", OP(slice(c.x(0), c.axis(), c.get<std::ptrdiff_t>("start"), c.get<std::ptrdiff_t>("stop"),
                         c.get<std::ptrdiff_t>("step")))},
      {"tril", OP(tril(c.x(0), c.get<int>("diagonal")))},

      {"index_select", OP(index_select(c.x(0), c.axis(), c.index(1)))},
      {"gather", OP(gather(c.x(0), c.axis(), c.index(1)))},
      {"masked_select", OP(masked_select(c.x(0), c.mask(1)))},
      {"masked_fill", OP(masked_fill(c.x(0), c.mask(1), c.get<Real>("value")))},
      {"where", OP(where(c.mask(0), c.x(1), c.x(2)))},

      {"masked_softmax", OP(masked_softmax(c.x(0), c.index(1)))},
      {"scaled_dot_product_attention", attention},

      {"embedding", OP(embedding(c.index(0), c.x(1)))},
      {"layer_norm", OP(layer_norm(c.x(0), c.shape("normalized_shape"), c.count() > 1 ? c.x(1) : Tensor(),
                                   c.count() > 2 ? c.x(2) : Tensor(), c.get<Real>("eps")))},
      {"rms_norm", OP(rms_norm(c.x(0), c.x(1), c.get<Real>("eps")))},

      {"mse_loss", OP(mse_loss(c.x(0), c.x(1), c.reduction()))},
      {"l1_loss", OP(l1_loss(c.x(0), c.x(1), c.reduction()))},
      {"smooth_l1_loss", OP(smooth_l1_loss(c.x(0), c.x(1), c.reduction(), c.get_or("beta", Real(1))))},
      {"binary_cross_entropy_with_logits", OP(binary_cross_entropy_with_logits(c.x(0), c.x(1), c.reduction()))},
      {"kl_div", OP(kl_div(c.x(0), c.x(1), c.reduction()))},
      {"cross_entropy", OP(cross_entropy(c.x(0), c.index(1),
                                         {.reduction = c.reduction(),
                                          .ignore_index = c.get_or<std::int64_t>("ignore_index", -100),
                                          .label_smoothing = c.get_or("label_smoothing", 0.0),
                                          .class_axis = c.class_axis()}))},
      {"nll_loss",
       OP(nll_loss(c.x(0), c.index(1), c.reduction(), c.get_or<std::int64_t>("ignore_index", -100), c.class_axis()))},
  };
  return table;
}
#undef OP

/// Thrown where an answer differs.
struct Difference {
  std::string text;
};

struct Tolerance {
  double relative;
  double absolute;
};

std::string position(std::size_t i, const Shape& shape) {
  Shape at(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; i /= shape[axis]) at[axis] = i % shape[axis];
  return to_text(at);
}

std::string number(double x) {
  std::ostringstream text;
  text << std::setprecision(17) << x;
  return text.str();
}

void compare(const std::string& what, const Json& expected_json, const Array& got, const Tolerance& tolerance) {
  const Array expected = read_array(expected_json);
  if (expected.shape() != got.shape()) {
    throw Difference{what + " shape: expected " + to_text(expected.shape()) + ", got " + to_text(got.shape())};
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double e = expected.data()[i];
    const double g = got.data()[i];
    const bool same = std::isnan(e) || std::isinf(e)
                          ? e == g || (std::isnan(e) && std::isnan(g))
                          : std::abs(g - e) <= tolerance.absolute + tolerance.relative * std::abs(e);
    if (!same) {
      throw Difference{what + " at " + position(i, got.shape()) + ": expected " + number(e) + ", got " + number(g)};
    }
  }
}

void compare_all(const std::string& what, const Json& expected, const std::vector<Tensor>& got,
                 const Tolerance& tolerance) {
  if (expected.size() != got.size()) {
    throw Difference{what + " count: expected " + std::to_string(expected.size()) + ", got " +
                     std::to_string(got.size())};
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    compare(what + "[" + std::to_string(i) + "]", expected[i], got[i].value(), tolerance);
  }
}

/// Runs one case; throws where it differs or can't be run.
void check(const Json& json) {
  const std::string name = json.at("op");
  const auto found = ops().find(name);
  require(found != ops().end(), "case", "unknown op", name);
  const Op& op = found->second;
  const Tolerance tolerance{json.value("rtol", 1e-9), json.value("atol", 1e-10)};
  Case c(json);

  const Tensor value = op(c);
  c.require_all_used();
  compare("output", json.at("output"), value.value(), tolerance);
  if (!json.contains("grad_output")) return;
  const Tensor dy(read_array(json.at("grad_output")));
  const Json& grads = json.at("grads");

  {
    Tape tape;
    tape.backward(op(c), {.seed = dy});
    std::vector<Tensor> got;
    for (const Tensor& x : c.leaves) got.push_back(x.has_grad() ? Tensor(x.grad()) : zeros(x.shape()));
    compare_all("grads", grads, got, tolerance);
  }

  if (!json.contains("second")) return;
  Tape tape;
  const std::vector<Tensor> first = tape.gradient(op(c), c.leaves, {.seed = dy, .create_graph = true});
  compare_all("grads (recorded)", grads, first, tolerance);
  const Json& directions = json.at("directions");
  require(directions.size() == first.size(), "case", "there must be a direction for each gradient", directions.size(),
          first.size());
  Tensor total = zeros({});
  for (std::size_t i = 0; i < first.size(); ++i) total += sum(first[i] * Tensor(read_array(directions[i])));
  std::vector<Tensor> second;
  if (total.requires_grad()) {
    second = tape.gradient(total, c.leaves);
  } else {
    for (const Tensor& x : c.leaves) second.push_back(zeros(x.shape()));
  }
  compare_all("second", json.at("second"), second, tolerance);
}

/// A file that can't be read as cases.
struct BadFile {
  std::string text;
};

struct Count {
  std::size_t passed = 0;
  std::size_t failed = 0;
};

void run_file(const std::string& path, Count& count) {
  std::ifstream file(path);
  if (!file) throw BadFile{"can't read " + path};
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) throw BadFile{path + ", line " + std::to_string(number) + ": not a JSON object"};
    std::string id = path + ":" + std::to_string(number);
    try {
      id = json.value("id", id);
      check(json);
      ++count.passed;
      continue;
    } catch (const Difference& difference) {
      std::cout << id << ": " << difference.text << '\n';
    } catch (const std::exception& error) {
      std::cout << id << ": " << error.what() << '\n';
    }
    ++count.failed;
  }
  if (file.bad()) throw BadFile{"can't read " + path};
}

}  // namespace
}  // namespace parity

int main(int argc, char** argv) {
  const std::vector<std::string> files(argv + 1, argv + argc);
  const bool help = files.size() == 1 && (files[0] == "--help" || files[0] == "-h");
  if (files.empty() || help) {
    (help ? std::cout : std::cerr) << "usage: parity FILE.jsonl...\n"
                                      "Compares every case of the files with the library; exits 1 when one differs.\n";
    return help ? 0 : 2;
  }
  parity::Count count;
  try {
    for (const std::string& file : files) parity::run_file(file, count);
  } catch (const parity::BadFile& bad) {
    std::cerr << "parity: " << bad.text << '\n';
    return 2;
  }
  std::cout << count.passed << " passed, " << count.failed << " failed\n";
  return count.failed == 0 ? 0 : 1;
}
