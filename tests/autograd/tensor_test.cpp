#include <cmath>
#include <limits>
#include <sstream>

#include "autograd/ops.hpp"
#include "tests/catch.hpp"

using namespace tapegrad;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<Real> elements(const Tensor& x) { return {x.value().storage().begin(), x.value().storage().end()}; }
using Reals = std::vector<Real>;

}  // namespace

TEST_CASE("a number makes a scalar Tensor", "[tensor]") {
  const Tensor x = 2.5;
  CHECK(x.defined());
  CHECK(x.shape() == Shape{});
  CHECK(x.rank() == 0);
  CHECK(x.size() == 1);
  CHECK(x.item() == Real(2.5));
  CHECK(Tensor(3).item() == 3);
  CHECK(Tensor(true).item() == 1);
  CHECK(Tensor(std::int64_t{-7}).item() == -7);
  CHECK(std::isnan(Tensor(std::nan("")).item()));
  CHECK_FALSE(x.requires_grad());
  CHECK_FALSE(x.has_grad());
}

TEST_CASE("nested lists make Tensors as deep as they are nested", "[tensor]") {
  CHECK(Tensor{1}.shape() == Shape{1});
  CHECK(Tensor{1, 2.5, 3u}.shape() == Shape{3});
  CHECK(elements(Tensor{1, 2.5, 3u}) == Reals{1, Real(2.5), 3});
  CHECK(Tensor{{1, 2}}.shape() == Shape{1, 2});
  CHECK(Tensor{{1}, {2}}.shape() == Shape{2, 1});
  CHECK(Tensor{{1, 2}, {3, 4}, {5, 6}}.shape() == Shape{3, 2});
  const Tensor deep{{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}, {{9, 10}, {11, 12}}};
  CHECK(deep.shape() == Shape{3, 2, 2});
  CHECK(elements(deep) == Reals{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  CHECK(Tensor{{{{7}}}}.shape() == Shape{1, 1, 1, 1});
  CHECK(Tensor{{}}.shape() == Shape{1, 0});
  CHECK(Tensor{{}, {}}.size() == 0);
}

TEST_CASE("ragged lists are refused", "[tensor]") {
  CHECK_THROWS_WITH((Tensor{{1, 2}, {3}}), "[Tensor] lists beside each other must be equally long; got 1 and 2");
  CHECK_THROWS_WITH((Tensor{{1}, {2, 3}}), ContainsSubstring("equally long; got 2 and 1"));
  CHECK_THROWS_WITH((Tensor{{1}, 2}), ContainsSubstring("[Tensor] lists must be nested equally deep"));
  CHECK_THROWS_WITH((Tensor{1, {2}}), ContainsSubstring("equally deep"));
  CHECK_THROWS_WITH((Tensor{{{1}}, {{2, 3}}}), ContainsSubstring("equally long"));
  CHECK_THROWS_AS((Tensor{{}, {1}}), Error);
}

TEST_CASE("operators take an xtensor array or expression beside a Tensor", "[tensor]") {
  const Parameter x(Tensor{1, 2});
  const Array c = Tensor{3, 4}.value();
  Tape tape;
  const Tensor y = x * c + c * Real(2) * x - c / x;
  CHECK(y.value()(1) == Approx(8 + 16 - 2));
  tape.backward(sum(y));
  CHECK(x.grad()(1) == Approx(4 + 8 + 1));
}

TEST_CASE("xtensor arrays and expressions make Tensors", "[tensor]") {
  const xt::xarray<double> doubles{{1, 2, 3}, {4, 5, 6}};
  const xt::xarray<int> integers{{1, 2, 3}, {4, 5, 6}};
  const xt::xarray<bool> truths{true, false, true};
  const xt::xarray<float, xt::layout_type::column_major> columns{{1, 2, 3}, {4, 5, 6}};
  const Reals in_order{1, 2, 3, 4, 5, 6};
  CHECK(elements(Tensor(doubles)) == in_order);
  CHECK(elements(Tensor(integers)) == in_order);
  CHECK(elements(Tensor(truths)) == Reals{1, 0, 1});
  CHECK(elements(Tensor(columns)) == in_order);  // by position, not by place in memory
  CHECK(Tensor(columns).shape() == Shape{2, 3});
  CHECK(elements(Tensor(doubles * 2 + integers)) == Reals{3, 6, 9, 12, 15, 18});
  CHECK(elements(Tensor(xt::strided_view(doubles, {xt::all(), 1}))) == Reals{2, 5});
  CHECK(elements(Tensor(xt::strided_view(doubles, {1, xt::range(0, 3, 2)}))) == Reals{4, 6});
  CHECK(elements(Tensor(xt::strided_view(doubles, {xt::all(), xt::range(2, xt::placeholders::_, -1)}))) ==
        Reals{3, 2, 1, 6, 5, 4});
  CHECK(elements(Tensor(xt::transpose(doubles))) == Reals{1, 4, 2, 5, 3, 6});
  CHECK(Tensor(xt::transpose(doubles)).shape() == Shape{3, 2});
  CHECK(Tensor(xt::xarray<double>(4.0)).shape() == Shape{});
  CHECK(Tensor(xt::xarray<double>::from_shape({0, 3})).shape() == Shape{0, 3});
}

TEST_CASE("a Tensor owns its elements, on a 64-byte line", "[tensor]") {
  Array array{{1, 2}, {3, 4}};
  const Tensor copied(array);
  const Real* place = array.data();
  const Tensor moved(std::move(array));
  CHECK(moved.value().data() == place);
  CHECK(copied.value().data() != place);
  for (const Tensor& x : {copied, moved, copied + moved, copied.detach(), Tensor(5)}) {
    CHECK(reinterpret_cast<std::uintptr_t>(x.value().data()) % 64 == 0);
  }
}

TEST_CASE("copies of a Tensor share its value and its gradient", "[tensor]") {
  Tensor a{1, 2};
  Tensor b = a;
  CHECK(a.same_as(b));
  b.mutable_value()(0) = 9;
  CHECK(a.value()(0) == 9);
  CHECK(a.version() == 1);
  b.set_requires_grad();
  CHECK(a.requires_grad());
  Tensor c = std::move(b);
  CHECK_FALSE(b.defined());
  CHECK(c.same_as(a));
  const Tensor& itself = c;
  c = itself;
  CHECK(c.same_as(a));
  a = Tensor(1);
  CHECK_FALSE(c.same_as(a));
  CHECK(c.value()(0) == 9);
}

TEST_CASE("an undefined Tensor refuses every use", "[tensor]") {
  Tensor none;
  CHECK_FALSE(none.defined());
  CHECK_FALSE(Tensor{}.defined());
  CHECK_NOTHROW(none = Tensor());
  const Tensor copy = none;
  const auto undefined = ContainsSubstring("[Tensor] an undefined Tensor can't be used");
  CHECK_THROWS_WITH(none.value(), undefined);
  CHECK_THROWS_WITH(none.shape(), undefined);
  CHECK_THROWS_WITH(none.item(), undefined);
  CHECK_THROWS_WITH(none.grad(), undefined);
  CHECK_THROWS_WITH(none.has_grad(), undefined);
  CHECK_THROWS_WITH(none.zero_grad(), undefined);
  CHECK_THROWS_WITH(none.mutable_value(), undefined);
  CHECK_THROWS_WITH(none.set_requires_grad(), undefined);
  CHECK_THROWS_WITH(none.requires_grad(), undefined);
  CHECK_THROWS_WITH(none.detach(), undefined);
  CHECK_THROWS_WITH(copy + Tensor(1), undefined);
  CHECK_THROWS_WITH(Tensor(1) * copy, undefined);
  CHECK_THROWS_WITH(exp(copy), undefined);
  CHECK_THROWS_WITH(Parameter(copy), undefined);
  Tape tape;
  CHECK_THROWS_WITH(tape.backward(none), undefined);
  CHECK_THROWS_WITH(tape.gradient(none, {}), undefined);
}

TEST_CASE("extent takes axes from both ends and refuses others", "[tensor]") {
  const Tensor x(Array(Shape{2, 3, 4}, Real(0)));
  CHECK(x.extent(0) == 2);
  CHECK(x.extent(2) == 4);
  CHECK(x.extent(-1) == 4);
  CHECK(x.extent(-3) == 2);
  CHECK_THROWS_WITH(x.extent(3), "[extent] the axis must be at least -rank and below the rank; got 3 and 3");
  CHECK_THROWS_AS(x.extent(-4), Error);
  CHECK_THROWS_AS(Tensor(1).extent(0), Error);
  CHECK_THROWS_AS(Tensor(1).extent(-1), Error);
  CHECK_THROWS_AS(x.extent(std::numeric_limits<int>::min()), Error);
}

TEST_CASE("item is for exactly one element", "[tensor]") {
  CHECK(Tensor{{7}}.item() == 7);
  CHECK_THROWS_WITH((Tensor{1, 2}.item()), "[item] the Tensor must have exactly one element; got (2)");
  CHECK_THROWS_AS(Tensor{{}}.item(), Error);
}

TEST_CASE("gradients are there after backward and gone after zero_grad", "[tensor]") {
  Tensor x{1, 2};
  CHECK_THROWS_WITH(x.grad(), ContainsSubstring("[grad] no gradient has reached this Tensor"));
  CHECK_THROWS_AS(x.mutable_grad(), Error);
  x.set_requires_grad();
  {
    Tape tape;
    tape.backward(sum(x * x));
  }
  CHECK(x.grad()(1) == 4);
  x.mutable_grad() *= Real(0.5);
  CHECK(x.grad()(1) == 2);
  x.zero_grad();
  CHECK_FALSE(x.has_grad());
  x.zero_grad();
  CHECK_FALSE(x.has_grad());
}

TEST_CASE("the output of a recorded op is neither changed in place nor made a leaf", "[tensor]") {
  Parameter x(Tensor{1, 2});
  Tape tape;
  Tensor y = exp(x);
  CHECK_THROWS_WITH(y.mutable_value(), ContainsSubstring("[mutable_value] the output of a recorded op"));
  CHECK_THROWS_WITH(y.set_requires_grad(false), ContainsSubstring("[set_requires_grad] only a leaf"));
  CHECK_THROWS_WITH(Parameter(y), ContainsSubstring("detach"));
  CHECK(y.version() == 0);
  CHECK(elements(y) == elements(exp(x.detach())));
  tape.backward(y, {.seed = Tensor{1, 1}});
  CHECK(elements(Tensor(x.grad())) == elements(exp(x.detach())));
}

TEST_CASE("detach is a new leaf with the same numbers", "[tensor]") {
  Parameter x(Tensor{1, 2});
  Tape tape;
  const Tensor y = x * 3;
  Tensor cut = y.detach();
  CHECK(elements(cut) == Reals{3, 6});
  CHECK_FALSE(cut.requires_grad());
  cut.mutable_value()(0) = 100;
  CHECK(y.value()(0) == 3);
  tape.backward(sum(y * y.detach()));  // d/dx (3 x c) = 3 c
  CHECK(elements(Tensor(x.grad())) == Reals{9, 18});
  CHECK_FALSE(x.detach().requires_grad());
}

TEST_CASE("a Parameter is a leaf whose gradient is wanted, and shares its Tensor", "[tensor]") {
  Tensor value{1, 2};
  const Parameter p(value);
  CHECK(p.requires_grad());
  CHECK(p.same_as(value));
  CHECK_FALSE(Parameter().defined());
}

TEST_CASE("compound assignment points the handle to a new value", "[tensor]") {
  Tensor a{1, 2};
  const Tensor before = a;
  a += Tensor{10, 20};
  CHECK(elements(a) == Reals{11, 22});
  a -= 1;
  a *= 2;
  a /= 4;
  CHECK(elements(a) == Reals{5, Real(10.5)});
  CHECK(elements(before) == Reals{1, 2});
}

namespace {

template <class T>
concept ChangesBy = requires(T& a, const Tensor& b) {
  a += b;
}
|| requires(T& a, const Tensor& b) { a -= b; }
|| requires(T& a, double b) { a *= b; }
|| requires(T& a, double b) { a /= b; };

}  // namespace

TEST_CASE("a Parameter can't be made to point elsewhere by an operator that assigns") {
  CHECK(ChangesBy<Tensor>);
  CHECK_FALSE(ChangesBy<Parameter>);
}

TEST_CASE("a Tensor prints its shape and values, a large one its ends", "[tensor]") {
  const auto printed = [](const Tensor& x) {
    std::ostringstream out;
    out << x;
    return out.str();
  };
  CHECK(printed({}) == "Tensor (undefined)");
  CHECK(printed(2.5) == "Tensor () 2.5");
  CHECK(printed(Tensor{{1, -2, 3}, {0.25, 5, 6}}) == "Tensor (2,3) {{1, -2, 3}, {0.25, 5, 6}}");
  CHECK(printed(zeros({2, 0, 3})) == "Tensor (2,0,3) {{}, {}}");
  CHECK(printed(zeros({0})) == "Tensor (0) {}");
  CHECK(printed(arange(64)).find("...") == std::string::npos);
  CHECK(printed(arange(1000)) == "Tensor (1000) {0, 1, 2, ..., 997, 998, 999}");
  CHECK(printed(reshape(arange(200), {2, 100})) ==
        "Tensor (2,100) {{0, 1, 2, ..., 97, 98, 99}, {100, 101, 102, ..., 197, 198, 199}}");
}
