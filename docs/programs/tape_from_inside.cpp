// What a tape holds: its steps, what they keep, and what is left when a backward pass has gone over them.
#include <fstream>
#include <iostream>

#include "docs/programs/toy.hpp"
#include "examples/support/show.hpp"
#include "tapegrad.hpp"

using namespace tapegrad;
using examples::expect, examples::show, examples::text;

int main() {
  // [toy run]
  Toy toy;
  const std::size_t a = toy.put(2), b = toy.put(3);
  toy.backward(toy.times(toy.sine(toy.times(a, b)), a));  // sin(a b) a
  show(text("the toy:    da = %.6f  db = %.6f", toy.gradients[a], toy.gradients[b]));
  // [/toy run]

  // [real run]
  Parameter x(Tensor(2)), y(Tensor(3));
  Tape tape;
  const Tensor z = sin(x * y) * x;
  tape.backward(z);
  show(text("tapegrad:   da = %.6f  db = %.6f\n", x.grad()(), y.grad()()));
  // [/real run]
  expect(std::abs(x.grad()() - toy.gradients[a]) < 1e-12, "both give the same");

  // [layer]
  Rng rng(0);
  const Tensor input = rng.normal({4, 3});
  Parameter weight(rng.normal({2, 3})), bias(Tensor{0, 0});
  const Tensor loss = mean(square(tanh(linear(input, weight, bias))));
  tape.print(std::cout);
  std::ofstream("tape_from_inside.dot") << tape.to_dot();
  show(text("\n%zu steps before the backward pass", tape.size()));
  tape.backward(loss);
  show(text("%zu after it", tape.size()));
  // [/layer]
  expect(tape.size() == 0, "a backward pass leaves the tape empty");

  // [refused]
  try {
    tape.backward(loss);
  } catch (const Error& error) {
    show(std::string("\n") + error.what());
  }
  // [/refused]
}
