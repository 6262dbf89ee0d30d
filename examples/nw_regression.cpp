// Kernel regression by attention pooling (Nadaraya, 1964; Watson, 1964), three ways, on a textbook's curve or on a
// table of your own. A prediction at x is an average of the known y, weighted by an attention that says how near each
// known x is; the three estimators differ only in where that attention comes from:
//
//   average pooling    every point counts the same
//   non-parametric     a kernel of fixed width: near points count more
//   parametric         softmax of -((x - key) w)^2 / 2, with w learned by gradient descent
#include "examples/nw_regression/report.hpp"
#include "examples/support/program.hpp"

using namespace nw_regression;

namespace {

struct Options {
  std::string csv, x_name, y_name;
  std::string kernel = "gaussian";
  bool shared_width = false;  // one weight for all keys ...
  bool per_position = false;  // ... or one for each key position; neither: the latter, but for a table the former
  double width = 0;           // of the kernel, in the units of x; 0: chosen
  std::size_t epochs = 0;     // 0: 100, or 20 with --quick
  double learning_rate = 0;   // 0: chosen
};

// ---- the estimators -------------------------------------------------------------------------------------------------

/// Attention (n,m) times values (m). A row of zeros, where no key is within the kernel's width, predicts nothing: NaN.
Tensor pool(const Tensor& attention, const Tensor& values) {
  return where(sum(attention, 1) > 0, matmul(attention, values), full({}, NAN));
}

/// Each known point predicted by a kernel from all the others.
Numbers left_out_by_kernel(const Problem& problem, nn::Kernel kernel, double width) {
  const Tensor x = problem.x_scale.to_tensor(problem.x), y = problem.y_scale.to_tensor(problem.y);
  const Tensor keys = nn::leave_one_out(x), values = nn::leave_one_out(y);
  Numbers predictions;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    const auto row = [at](const Tensor& t) { return reshape(slice(t, 0, at, at + 1), -1); };
    const Tensor attention = nn::kernel_attention(row(x), row(keys), kernel, width);
    predictions.push_back(problem.y_scale.to_units(pool(attention, row(values)))[0]);
  }
  return predictions;
}

/// Average pooling (Kernel::constant) and non-parametric pooling.
Estimate pool_by_kernel(const Problem& problem, nn::Kernel kernel, double width) {
  const Tensor x = problem.x_scale.to_tensor(problem.x), y = problem.y_scale.to_tensor(problem.y);
  Estimate estimate;
  estimate.attention = nn::kernel_attention(problem.x_scale.to_tensor(problem.test_x), x, kernel, width);
  estimate.curve = problem.y_scale.to_units(pool(estimate.attention, y));
  estimate.left_out = left_out_by_kernel(problem, kernel, width);
  return estimate;
}

/// The width of a Gaussian kernel, from 0.4 of x's range down by halves, that predicts left-out points best. It stays
/// above the mean distance of neighbours: below, a point sees hardly another one. Measured in such widths, x suits the
/// learned w, which starts between 0 and 1.
double best_width(Problem problem) {
  const double range = problem.x.back() - problem.x.front();
  double best = 0.4 * range, least = INFINITY;
  for (double width = best; width > range / static_cast<double>(problem.x.size()); width /= 2) {
    problem.x_scale.unit = width;
    const double error = rmse(left_out_by_kernel(problem, nn::Kernel::gaussian, 1), problem.y, problem.y_scale.unit);
    if (error < least) best = width;
    least = std::min(least, error);
  }
  return best;
}

// ---- training -------------------------------------------------------------------------------------------------------

/// Trains w: each point is predicted from all others, the squared errors are summed, and w steps down the gradient.
/// A `careful` step that would raise the loss is taken again at half the rate. Returns the loss before each step and
/// after the last one; ends early where a loss is not finite.
Numbers train(nn::NadarayaWatson& net, const Tensor& x, const Tensor& y, std::size_t epochs, double rate, bool careful,
              bool quiet) {
  const Tensor keys = nn::leave_one_out(x), values = nn::leave_one_out(y);  // (n, n-1): no point sees itself
  const nn::MSELoss squared_errors{Reduction::sum};
  optim::SGD optimizer(net.parameters(), {.learning_rate = rate});
  examples::Progress progress("training", epochs, quiet);
  const auto loss_now = [&] { return static_cast<double>(squared_errors(net(x, keys, values), y).item()); };
  Numbers losses;
  for (std::size_t epoch = 1; epoch <= epochs; ++epoch) {
    Tape tape;
    const Tensor loss = squared_errors(net(x, keys, values), y);
    losses.push_back(loss.item());
    if (!std::isfinite(losses.back())) return losses;
    tape.backward(loss);
    const Array before = net.w.value();
    optimizer.step();
    while (careful && !(loss_now() <= losses.back())) {  // ends at the latest where a step changes nothing
      optimizer.set_learning_rate(optimizer.learning_rate() / 2);
      net.w.mutable_value() = before;
      optimizer.step();
    }
    optimizer.zero_grad();
    progress.print(text("epoch %zu, loss %.6f", epoch, losses.back()));
    progress.update(epoch, {.loss = losses.back()});
  }
  losses.push_back(loss_now());
  return losses;
}

/// The textbook's 0.5 for its data. A table's x is measured in widths of a kernel, so its gradients are larger: a
/// tenth, and with one width, at which all points pull, less where they are more than the textbook's 50.
double default_rate(bool table, bool shared, std::size_t points) {
  if (!table) return 0.5;
  return shared ? 0.05 * std::min(1.0, 50 / static_cast<double>(points)) : 0.05;
}

/// Throws unless training has lowered the loss; a table may leave nothing to learn, as a constant y does.
void require_learned(const Numbers& losses, bool table) {
  const double first = losses.front(), last = losses.back();
  if (last < first || (table && last <= 1.0001 * first)) return;
  if (!std::isfinite(last)) {
    throw std::runtime_error(
        text("training diverged: the loss is not finite in epoch %zu; try a smaller --learning-rate", losses.size()));
  }
  throw std::runtime_error(
      text("training did not lower the loss: %g before, %g after %zu epochs; try another --learning-rate", first, last,
           losses.size() - 1));
}

/// Parametric pooling, after training. There a query had n-1 keys, and each of the n-1 weights belongs to a position
/// among them; so predictions use the first n-1 points. One shared width takes all of them.
Estimate pool_by_training(const Problem& problem, nn::NadarayaWatson& net) {
  const Tensor x = problem.x_scale.to_tensor(problem.x), y = problem.y_scale.to_tensor(problem.y);
  const Tensor queries = problem.x_scale.to_tensor(problem.test_x);
  const std::size_t keys = net.w.size() == 1 ? x.size() : net.w.size();
  const auto first = [&](const Tensor& t) {
    return broadcast_to(slice(t, 0, 0, static_cast<std::ptrdiff_t>(keys)), Shape{queries.size(), keys});
  };
  Estimate estimate;
  estimate.curve = problem.y_scale.to_units(net(queries, first(x), first(y)));
  estimate.attention = net.attention_weights();
  estimate.left_out = problem.y_scale.to_units(net(x, nn::leave_one_out(x), nn::leave_one_out(y)));
  return estimate;
}

// ---- the job --------------------------------------------------------------------------------------------------------

nn::Kernel kernel_named(const std::string& name) {
  if (name == "gaussian") return nn::Kernel::gaussian;
  if (name == "boxcar") return nn::Kernel::boxcar;
  if (name == "epanechnikov" || name == "epanechikov") return nn::Kernel::epanechnikov;  // the book's spelling, too
  if (name == "constant") return nn::Kernel::constant;
  throw BadInput("--kernel must be gaussian, boxcar, epanechnikov or constant; got '" + name + "'");
}

void job(const examples::Common& common, const Options& options) {
  Rng rng(common.seed);
  const nn::Kernel kernel = kernel_named(options.kernel);
  Problem problem =
      options.csv.empty() ? textbook_problem(rng) : user_problem(options.csv, options.x_name, options.y_name);
  const bool table = !options.csv.empty();
  const bool shared = options.shared_width || (table && !options.per_position);
  if (table) problem.x_scale.unit = best_width(problem);
  const std::size_t n = problem.x.size();
  const double unit = problem.x_scale.unit, width = options.width > 0 ? options.width : unit;
  if (!(width / unit > 1e-6 && width / unit < 1e6)) {
    throw BadInput(text("--width must be between %g and %g for this x; got %g", unit * 1e-6, unit * 1e6, width));
  }
  examples::prepare_output_folder(common.out);
  examples::require_kept({options.csv}, examples::with_endings(common.out, {"predictions", "left_out", "estimators",
                                                                            "loss", "attention"}));
  const std::size_t epochs = options.epochs > 0 ? options.epochs : common.quick ? 20 : 100;

  std::cout << text("%zu training points, %s from %.4g to %.4g; %zu test points from %.4g to %.4g\n", n,
                    problem.x_name.c_str(), problem.x.front(), problem.x.back(), problem.test_x.size(),
                    problem.test_x.front(), problem.test_x.back());
  if (table) {
    std::cout << text("learned in scaled units: %s in widths of %.4g, %s from its mean %.4g in steps of %.4g\n",
                      problem.x_name.c_str(), unit, problem.y_name.c_str(), problem.y_scale.offset,
                      problem.y_scale.unit);
  }
  nn::NadarayaWatson net(shared ? 1 : n - 1, rng);
  const double rate = options.learning_rate > 0 ? options.learning_rate : default_rate(table, shared, n);
  std::cout << text("training %zu weight%s on %zu points, each predicted from the %zu others; learning rate %g%s\n",
                    net.w.size(), net.w.size() == 1 ? "" : "s, one per key position,", n, n - 1, rate,
                    table ? ", halved where a step would raise the loss" : "");
  if (table && shared) {
    std::cout
        << "one weight for all keys: a key position (--per-position) is this point or its neighbour, depending on\n"
           "which point is left out, so weights per position can fit left-out errors that their curve contradicts\n";
  }
  const Numbers losses = train(net, problem.x_scale.to_tensor(problem.x), problem.y_scale.to_tensor(problem.y), epochs,
                               rate, table, common.quiet);
  require_learned(losses, table);
  std::cout << text("after training, loss %.6f\n", losses.back());
  print_widths(problem, net.w);
  if (!shared) {
    std::cout << text("predictions use the first %zu training points, one for each weight\n", n - 1);
  }

  Estimate average = pool_by_kernel(problem, nn::Kernel::constant, 1);
  Estimate fixed = pool_by_kernel(problem, kernel, width / unit);
  Estimate learned = pool_by_training(problem, net);
  average.name = "average pooling";
  average.column = "average_pooling";
  fixed.name = text("non-parametric (%s, width %.4g)", options.kernel.c_str(), width);
  fixed.column = "non_parametric";
  learned.name = shared ? "parametric (one width)" : "parametric";
  learned.column = "parametric";

  const std::vector<Estimate> estimates = {average, fixed, learned};
  std::cout << '\n' << examples::terminal_plot(panel_of(problem, learned, 50));
  print_errors(problem, estimates);
  write_results(common.out, problem, estimates, losses);
}

std::string positive(const std::string& number) {
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  return *end == '\0' && value > 0 && std::isfinite(value) ? "" : "a positive number is needed; got '" + number + "'";
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const auto add_options = [&](CLI::App& app) {
    auto* csv = app.add_option("--csv", options.csv,
                               "learn this table instead of the textbook's curve: two columns of "
                               "numbers or more, 3 to 4000 rows; comma, semicolon or tab")
                    ->type_name("FILE");
    app.add_option("--x", options.x_name, "the table's column to predict from [first of numbers]")
        ->type_name("NAME")
        ->needs(csv);
    app.add_option("--y", options.y_name, "the column to predict [next of numbers]")->type_name("NAME")->needs(csv);
    app.add_option("--kernel", options.kernel,
                   "of the non-parametric estimator: gaussian, boxcar, epanechnikov or constant")
        ->type_name("NAME")
        ->capture_default_str();
    app.add_option("--width", options.width,
                   "of that kernel, in units of x [1; for a table, what predicts left-out points best]")
        ->check(positive, "")
        ->type_name("WIDTH");
    auto* shared = app.add_flag("--shared-width", options.shared_width,
                                "train one weight, so one width, for all keys [for a table]");
    app.add_flag(
           "--per-position", options.per_position,
           "train a weight per key position [for the textbook's curve]; a point's position depends on which one is "
           "left out, so a table's curve may contradict its left-out errors")
        ->excludes(shared);
    examples::add_number(app, "--epochs", options.epochs, 1, 1'000'000,
                         "steps of training, each on all points [100; 20 with --quick]");
    app.add_option("--learning-rate", options.learning_rate,
                   "step per unit of gradient [0.5; for a table, 0.05 or less]")
        ->check(positive, "")
        ->type_name("RATE");
  };
  return examples::run(
      argc, argv, "nw_regression",
      "Kernel regression by attention pooling: a curve learned from noisy points by average pooling, by a "
      "kernel of\nfixed width, and by trained attention. Numbers go to the terminal, pictures and tables "
      "to a folder.",
      add_options, [&](const examples::Common& common) { job(common, options); });
}
