// Automatic differentiation of numbers, to be read.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

/// The idea alone: numbers, closures, and a list of them that is run backwards.
struct Toy {
  std::vector<double> values, gradients;
  std::vector<std::function<void()>> steps;

  std::size_t put(double value) {
    values.push_back(value);
    gradients.push_back(0);
    return values.size() - 1;
  }
  std::size_t times(std::size_t a, std::size_t b) {
    const std::size_t y = put(values[a] * values[b]);
    steps.push_back([=, this] {
      gradients[a] += gradients[y] * values[b];
      gradients[b] += gradients[y] * values[a];
    });
    return y;
  }
  std::size_t sine(std::size_t x) {
    const std::size_t y = put(std::sin(values[x]));
    steps.push_back([=, this] { gradients[x] += gradients[y] * std::cos(values[x]); });
    return y;
  }
  void backward(std::size_t y) {
    gradients[y] = 1;
    for (std::size_t i = steps.size(); i-- > 0;) steps[i]();
  }
};
