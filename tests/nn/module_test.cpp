#include "nn/module.hpp"

#include <memory>
#include <sstream>
#include <stdexcept>

#include "nn/linear.hpp"
#include "tests/catch.hpp"

using namespace tapegrad;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Affine : nn::Module {
  Affine(std::size_t in, std::size_t out)
      : weight(param("weight", Array(Shape{out, in}, Real(1)))), bias(param("bias", Array(Shape{out}, Real(0)))) {}
  Parameter weight;
  Parameter bias;
};

struct Encoder : nn::Module {
  Parameter scale = param("scale", 2);
  nn::ModuleList<Affine> layers = child<nn::ModuleList<Affine>>("layers");
  Encoder() {
    layers.add(4, 3);
    layers.add(3, 2);
  }
};

struct Model : nn::Module {
  Encoder encoder = child<Encoder>("encoder");
  Affine head = child<Affine>("head", 2, 5);
  Parameter shared = param("shared", encoder.layers[1].weight);
};

std::vector<std::string> names(const nn::Module& module) {
  std::vector<std::string> result;
  for (const auto& [name, parameter] : module.named_parameters()) result.push_back(name);
  return result;
}

}  // namespace

TEST_CASE("Module names its parameters in the order of declaration") {
  const Model model;
  CHECK(names(model) == std::vector<std::string>{"encoder.scale", "encoder.layers.0.weight", "encoder.layers.0.bias",
                                                 "encoder.layers.1.weight", "encoder.layers.1.bias", "head.weight",
                                                 "head.bias", "shared"});
  CHECK(model.named_parameters()[1].second.same_as(const_cast<Model&>(model).encoder.layers[0].weight));
}

TEST_CASE("Module lists and counts a shared parameter once") {
  const Model model;
  CHECK(model.parameters().size() == 7);
  CHECK(model.parameter_count() == 1 + 12 + 3 + 6 + 2 + 10 + 5);
  CHECK(model.shared.same_as(model.parameters()[3]));
}

TEST_CASE("A parameter of a module learns, and zero_grad forgets") {
  Model model;
  Tape tape;
  tape.backward(sum(model.head.weight * 3) + sum(model.shared * 2));
  CHECK(model.head.weight.grad()(0, 0) == 3);
  CHECK(model.encoder.layers[1].weight.grad()(0, 0) == 2);
  model.zero_grad();
  for (const Parameter& parameter : model.parameters()) CHECK(!parameter.has_grad());
}

TEST_CASE("train and eval reach every child") {
  Model model;
  CHECK(model.encoder.layers[1].training());
  model.eval();
  CHECK(!model.training());
  CHECK(!model.encoder.layers[1].training());
  CHECK(!model.head.training());
  model.train();
  CHECK(model.encoder.layers[0].training());
}

TEST_CASE("Module registers members by reference, and modules made elsewhere are not its children") {
  struct Holder : nn::Module {
    Affine inner{2, 1};
    Holder() { child("inner", inner); }
  };
  struct Bystander : nn::Module {
    Affine stranger{2, 1};
    Affine mine = child<Affine>("mine", 2, 1);
    Affine another_stranger{2, 1};
  };
  CHECK(names(Holder()) == std::vector<std::string>{"inner.weight", "inner.bias"});
  CHECK(names(Bystander()) == std::vector<std::string>{"mine.weight", "mine.bias"});
}

TEST_CASE("Module refuses names that are taken, empty or dotted") {
  struct Open : nn::Module {
    using nn::Module::child;
    using nn::Module::param;
  };
  Open module;
  module.param("a", 1);
  CHECK_THROWS_WITH(module.param("a", 1), "[Module] a name can be given only once; got a");
  CHECK_THROWS_AS(module.child<Open>("a"), Error);
  CHECK_THROWS_WITH(module.param("", 1), ContainsSubstring("non-empty"));
  CHECK_THROWS_WITH(module.param("a.b", 1), ContainsSubstring("a.b"));
  CHECK_THROWS_WITH(module.param("b", Tensor()), ContainsSubstring("undefined"));
  CHECK_THROWS_AS(module.child("self", module), Error);
  CHECK(module.parameters().size() == 1);
  CHECK_THROWS_AS(nn::ModuleList<Affine>()[0], Error);
}

TEST_CASE("Module prints names, shapes, counts and the total") {
  std::ostringstream text;
  text << Model();
  CHECK(text.str() ==
        "name                     shape         count\n"
        "encoder.scale            ()                1\n"
        "encoder.layers.0.weight  (3,4)            12\n"
        "encoder.layers.0.bias    (3)               3\n"
        "encoder.layers.1.weight  (2,3)             6\n"
        "encoder.layers.1.bias    (2)               2\n"
        "head.weight              (5,2)            10\n"
        "head.bias                (5)               5\n"
        "shared                   (2,3)        shared\n"
        "total                                     39\n");
}

static_assert(!std::is_copy_constructible_v<Model> && !std::is_move_constructible_v<Model>);

TEST_CASE("Module refuses a child that contains it") {
  struct Open : nn::Module {
    using nn::Module::child;
  };
  Open a, b, c;
  a.child("b", b);
  b.child("c", c);
  CHECK_THROWS_WITH(c.child("a", a), "[Module] a child can't contain its parent; got a");
  CHECK_THROWS_WITH(b.child("a", a), "[Module] a child can't contain its parent; got a");
  a.child("c", c);  // twice below a, but no cycle
  CHECK(a.parameter_count() == 0);
}

TEST_CASE("A child that could not be made leaves nothing behind") {
  struct Number {
    Number(int) { throw std::runtime_error("no number"); }
  };
  struct Picky : nn::Module {
    explicit Picky(Number) {}  // the argument throws before the module is begun
  };
  struct Open : nn::Module {
    using nn::Module::child;
  };
  {
    Open gone;
    CHECK_THROWS_AS(gone.child<Picky>("a", 1), std::runtime_error);
    CHECK_THROWS_AS(gone.child<nn::Linear>("b", 0, 0, *std::make_unique<Rng>()), Error);
    const Affine stranger(2, 1);
    CHECK(names(gone).empty());
    gone.child<Affine>("a", 2, 1);
  }
  CHECK(Affine(2, 1).parameter_count() == 3);
}
