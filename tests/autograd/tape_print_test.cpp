#include <sstream>

#include "autograd/ops.hpp"
#include "tests/catch.hpp"

using namespace tapegrad;

namespace {

std::string printed(const Tape& tape) {
  std::ostringstream out;
  tape.print(out);
  return out.str();
}

std::string bytes(std::size_t elements) { return std::to_string(elements * sizeof(Real)); }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// One training step of Nadaraya-Watson regression with a weight per key.
Tensor nadaraya_watson(const Parameter& w, const Tensor& queries, const Tensor& keys, const Tensor& values) {
  const Tensor weights = softmax(Real(-0.5) * square((queries - keys) * w), 1);
  return sum(weights * values, 1);
}

}  // namespace

TEST_CASE("an empty tape prints its header and a total of nothing", "[print]") {
  Tape tape;
  CHECK(printed(tape) ==
        "step  op  operands  y  saved (bytes)\n"
        "0 steps save 0 bytes (an array counts in each step that keeps it)\n");
}

TEST_CASE("a printed tape says where each operand comes from and what is kept", "[print]") {
  Parameter w(Tensor{1, 2, 3});
  Tape tape;
  const Tensor scaled = w * Tensor{{1, 2, 3}, {4, 5, 6}};
  const Tensor y = exp(scaled);
  const std::string text = printed(tape);
  CAPTURE(text);
  std::istringstream lines(text);
  std::string header, leaf, mul, exp_line, total;
  std::getline(lines, header);
  std::getline(lines, leaf);
  std::getline(lines, mul);
  std::getline(lines, exp_line);
  std::getline(lines, total);
  CHECK(leaf.find("   0  leaf") == 0);
  CHECK(mul.find("   1  mul ") == 0);
  CHECK(mul.find("x0 #0 (3), x1 const (2,3)") != std::string::npos);
  CHECK(mul.find("x0 " + bytes(3) + ", x1 " + bytes(6)) != std::string::npos);
  CHECK(exp_line.find("x0 #1 (2,3)") != std::string::npos);
  CHECK(exp_line.find("y " + bytes(6)) == header.find("saved"));  // only the output; the columns stand in line
  CHECK(mul.find("x0 #0") == header.find("operands"));
  CHECK(mul.find("(2,3)", header.find("y ")) == header.find("y "));
  CHECK(total.find("3 steps save " + bytes(15) + " bytes") == 0);
}

TEST_CASE("masks, indices and saved arrays are named on a printed tape", "[print]") {
  const auto rule = []<class T>(Unread, const T& dy, Unread, const Mask&, const Index&, const Saved&, Sink<T> dx) {
    dx += dy;
  };
  Tape tape;
  const Parameter x(Tensor{1, 2});
  const Tensor y = record("odd \"op\"", Tensor{1, 2}, rule, x, Mask{{true, false}}, Index{1, 2, 3}, Saved{Tensor(7)});
  const std::string text = printed(tape);
  CAPTURE(text);
  CHECK(text.find("x0 #0 (2), x1 mask (1,2), x2 index (3), x3 saved ()") != std::string::npos);
  CHECK(text.find("x1 2, x2 24, x3 " + bytes(1)) != std::string::npos);
  CHECK(tape.to_dot().find("odd \\\"op\\\"") != std::string::npos);
}

TEST_CASE("the graph of a training step distinguishes leaves, ops and constants", "[print]") {
  Parameter w(Tensor{1, 1, 1});
  Tape tape;
  const Tensor loss =
      mse_loss(nadaraya_watson(w, Tensor{{1}, {2}}, Tensor{1, 2, 3}, Tensor{1, 4, 9}), Tensor{1, 4}, Reduction::sum);
  const std::string dot = tape.to_dot();
  CAPTURE(dot);
  CHECK(dot.find("digraph tape {\n") == 0);
  CHECK(dot.substr(dot.size() - 2) == "}\n");
  CHECK(count(dot, "{") == count(dot, "}"));
  CHECK(count(dot, "shape=box") == 1);
  CHECK(count(dot, "shape=ellipse") == tape.size() - 1);
  CHECK(count(dot, "\"const\\n") >= 3);  // queries minus keys, values, target
  CHECK(dot.find("s0 [label=\"#0 leaf\\n(3)\", shape=box") != std::string::npos);
  CHECK(dot.find("softmax\\n(2,3)\", shape=ellipse") != std::string::npos);
  CHECK(dot.find("s0 -> s1;") != std::string::npos);
  CHECK(printed(tape).find("softmax") != std::string::npos);
}
