#include "examples/support/plot.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "examples/support/plot_parts.hpp"
#include "examples/support/program.hpp"
#include "tests/catch.hpp"

namespace fs = std::filesystem;
using namespace examples;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr double gap = std::numeric_limits<double>::quiet_NaN();

// A folder of its own; GNUPLOT is as before afterwards.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("tapegrad_plot_" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() {
    unsetenv("GNUPLOT");
    fs::remove_all(path);
  }
  std::string at(const std::string& name) const { return (path / name).string(); }
  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), {})); }
  void gnuplot_is(const std::string& script) const {
    std::ofstream(path / "gnuplot") << "#!/bin/sh\n" << script;
    fs::permissions(path / "gnuplot", fs::perms::owner_all);
    setenv("GNUPLOT", at("gnuplot").c_str(), 1);
  }
};

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

bool gnuplot_is_there() {
  const bool there = std::system("command -v gnuplot >/dev/null 2>&1") == 0;
  if (!there) WARN("gnuplot is not installed: its pictures are not tested");
  return there;
}

Figure curve(const std::string& label = "curve") {
  Panel panel{"A title", "x", "y", {{label, {1, 2, 3}, {4, 5, 6}}}, {}};
  return {"", {panel}};
}

std::size_t width_of(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](unsigned char c) { return c >> 6 != 2; }));
}

}  // namespace

TEST_CASE("figures are drawn as SVG and PNG", "[plot]") {
  if (!gnuplot_is_there()) return;
  const Folder folder;
  const std::string path = folder.at("it's $(touch x) `touch y`; \"z\"");
  CHECK(save(curve(), path) == std::vector{path + ".svg", path + ".png"});
  CHECK(read(path + ".png").substr(0, 8) == "\x89PNG\r\n\x1a\n");
  CHECK_THAT(read(path + ".svg"), ContainsSubstring("</svg>") && ContainsSubstring("A title"));
  CHECK(folder.files() == 2);
}

TEST_CASE("texts are shown as they are, never run", "[plot]") {
  if (!gnuplot_is_there()) return;
  const Folder folder;
  const std::string nasty = "a_b^{c} 'q' `touch " + folder.at("run") + "` @m 100% <b>&\n\x01\xFF\nquit";
  Figure figure = curve(nasty);
  figure.title = nasty;
  figure.panels[0].xlabel = figure.panels[0].ylabel = nasty;
  figure.panels[0].guides = {{true, 2, nasty}, {false, 9, ""}};
  save(figure, folder.at("curve"));
  CHECK_THAT(read(folder.at("curve.svg")),
             ContainsSubstring("a_b^{c} 'q' `touch ") && ContainsSubstring("100% &lt;b>&amp;"));
  HeatMap map{nasty, nasty, nasty, 2, 2, {1, 2, 3, gap}, {nasty, "50%"}, {"it's", nasty}};
  save(HeatMaps{nasty, nasty, {map}}, folder.at("map"));
  CHECK_THAT(read(folder.at("map.svg")),
             ContainsSubstring("<text>50%</text>") && ContainsSubstring("<text>it's</text>"));
  CHECK_FALSE(fs::exists(folder.at("run")));
}

TEST_CASE("awkward data are drawn all the same", "[plot]") {
  if (!gnuplot_is_there()) return;
  const Folder folder;
  Figure figure;
  figure.panels.push_back({"constant", "", "", {{"", {1, 2}, {7, 7}}}, {}});
  figure.panels.push_back({"one point", "", "", {{"", {0}, {0}, Mark::points}}, {}});
  figure.panels.push_back(
      {"gaps", "", "", {{"", {1, 2, 3, 4}, {1, gap, INFINITY, 2}, Mark::line_points}, {"none", {}, {}}}, {}});
  figure.panels.push_back({"log", "", "", {{"", {0, 1, 1000}, {-1, 1e-9, 1e9}}}, {}, true, true});
  figure.panels.push_back({"huge", "", "", {{"", {0, 1}, {-1e308, 1e308}}}, {}});
  CHECK(save(figure, folder.at("awkward")).size() == 2);
  HeatMaps maps{
      "",
      "",
      {{"constant", "", "", 1, 1, {3}, {}, {}}, {"signed", "", "", 2, 300, std::vector<double>(600, -1), {}, {}}}};
  CHECK(save(maps, folder.at("maps")).size() == 2);
}

TEST_CASE("row 0 of a heat map is at the top", "[plot]") {
  if (!gnuplot_is_there()) return;
  const Folder folder;
  save(HeatMaps{"", "", {{"", "", "", 2, 1, {0, 1}, {"first", "second"}, {}}}}, folder.at("map"));
  const std::string svg = read(folder.at("map.svg"));
  const auto height_of = [&](const std::string& label) {
    const std::size_t text = svg.find("<text>" + label);
    REQUIRE(text != std::string::npos);
    return std::stod(svg.substr(svg.find(',', svg.rfind("translate(", text)) + 1));
  };
  CHECK(height_of("first") < height_of("second"));
}

TEST_CASE("data that do not fit together are refused and nothing is written", "[plot]") {
  const Folder folder;
  CHECK_THROWS_AS(save(Figure{}, folder.at("x")), std::invalid_argument);
  CHECK_THROWS_AS(save(HeatMaps{}, folder.at("x")), std::invalid_argument);
  CHECK_THROWS_WITH(save(Figure{"", {{"", "", "", {{"s", {1, 2}, {1}}}, {}}}}, folder.at("x")),
                    ContainsSubstring("must be equally long; got 2 and 1"));
  CHECK_THROWS_WITH(save(Figure{"", {{"p", "", "", {{"s", {1}, {gap}}}, {}}}}, folder.at("x")),
                    ContainsSubstring("nothing to draw in 'p'"));
  CHECK_THROWS_AS(save(HeatMaps{"", "", {{"", "", "", 2, 2, {1, 2, 3}, {}, {}}}}, folder.at("x")),
                  std::invalid_argument);
  CHECK_THROWS_AS(save(HeatMaps{"", "", {{"", "", "", 1, 1, {1}, {"a", "b"}, {}}}}, folder.at("x")),
                  std::invalid_argument);
  CHECK(folder.files() == 0);
}

TEST_CASE("without gnuplot the data are written as CSV", "[plot]") {
  const Folder folder;
  setenv("GNUPLOT", folder.at("none").c_str(), 1);
  CHECK(save(curve("a, b"), folder.at("curve")) == std::vector{folder.at("curve.csv")});
  CHECK(read(folder.at("curve.csv")) == "panel,series,x,y\n0,\"a, b\",1,4\n0,\"a, b\",2,5\n0,\"a, b\",3,6\n");
  save(HeatMaps{"", "", {{"", "", "", 1, 2, {0.5, 2}, {}, {"u", "v"}}}}, folder.at("map"));
  CHECK(read(folder.at("map.csv")) == "map,row,column,value\n0,0,u,0.5\n0,0,v,2\n");
}

TEST_CASE("a gnuplot that fails is an error of one line, and the old picture stays", "[plot]") {
  const Folder folder;
  std::ofstream(folder.at("curve.svg")) << "old";
  folder.gnuplot_is("echo half\nprintf 'set x\\n   ^\\nline 3: cannot\\n\\n' >&2\nexit 1\n");
  CHECK_THROWS_WITH(save(curve(), folder.at("curve")), "gnuplot failed: line 3: cannot");
  folder.gnuplot_is("exit 0\n");
  CHECK_THROWS_WITH(save(curve(), folder.at("curve")), "gnuplot failed: no message");
  folder.gnuplot_is("kill -9 $$\n");
  CHECK_THROWS_AS(save(curve(), folder.at("curve")), std::runtime_error);
  CHECK(read(folder.at("curve.svg")) == "old");
  CHECK(folder.files() == 2);
}

TEST_CASE("the terminal's plot fits its width and shows ranges and key", "[plot]") {
  Panel panel{"A title", "time", "size", {{"curve", {0, 5, 10}, {-2, gap, 3}}, {"cloud", {10}, {3}, Mark::points}}, {}};
  for (const bool utf8 : {false, true}) {
    std::istringstream lines(terminal_plot(panel, 72, 10, utf8));
    std::vector<std::string> text;
    for (std::string line; std::getline(lines, line);) {
      CHECK(width_of(line) <= 72);
      text.push_back(line);
    }
    REQUIRE(text.size() == 15);
    CHECK_THAT(text[2], ContainsSubstring(" 3 ") && ContainsSubstring(utf8 ? "■" : "+"));
    CHECK_THAT(text[11], ContainsSubstring("-2 "));
    CHECK_THAT(text[13], ContainsSubstring("0") && ContainsSubstring("time") && ContainsSubstring("10"));
    CHECK_THAT(text[14], ContainsSubstring("curve") && ContainsSubstring("cloud"));
  }
  const std::string ascii = terminal_plot(panel, 72, 10, false);
  CHECK(std::all_of(ascii.begin(), ascii.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
}

TEST_CASE("labels have the digits that tell a range's values apart", "[plot]") {
  using Labels = std::vector<std::string>;
  CHECK(labels_of({4, 14.5, 25}, 3) == Labels{"4.0", "14.5", "25.0"});
  CHECK(labels_of({0, 500, 1000}, 3) == Labels{"0", "500", "1000"});
  CHECK(labels_of({8.47e-5, -1e-7, 9.99}, 3) == Labels{"0.00", "0.00", "9.99"});
  CHECK(labels_of({101700, 123456}, 4) == Labels{"101700", "123456"});
  CHECK(labels_of({0.00125, 0.0015}, 3) == Labels{"0.00125", "0.00150"});
  CHECK(labels_of({7}, 4) == Labels{"7"});
  CHECK(labels_of({0}, 4) == Labels{"0"});
  CHECK(labels_of({1e30, 2e30}, 3) == Labels{"1e+30", "2e+30"});
  CHECK(labels_of({-1e308, 1e308}, 3) == Labels{"-1e+308", "1e+308"});
}

TEST_CASE("the terminal's plot puts a rising line where it belongs", "[plot]") {
  const Panel panel{"", "", "", {{"", {1, 10, 100}, {1, 10, 100}}}, {}, true, true};
  std::istringstream lines(terminal_plot(panel, 40, 12, false));
  std::size_t last = std::string::npos;
  for (int row = 0; row < 12; ++row) {
    std::string line;
    std::getline(lines, line);
    const std::size_t at = line.find('*');
    REQUIRE(at != std::string::npos);
    CHECK(at < last);
    last = at;
  }
}

TEST_CASE("run turns what a job throws into exit codes", "[program]") {
  const auto code = [](std::vector<const char*> arguments, const std::function<void(const Common&)>& job) {
    arguments.insert(arguments.begin(), "demo");
    // What is said goes to stderr; the tests' own output stays clean.
    std::ostringstream said, out;
    auto* const err_before = std::cerr.rdbuf(said.rdbuf());
    auto* const out_before = std::cout.rdbuf(out.rdbuf());
    const int result = run(
        static_cast<int>(arguments.size()), arguments.data(), "demo", "A demo.", [](CLI::App&) {}, job);
    std::cerr.rdbuf(err_before);
    std::cout.rdbuf(out_before);
    const std::string text = said.str();
    if (result != 0) {
      CHECK(text.rfind("demo: ", 0) == 0);
      CHECK(std::count(text.begin(), text.end(), '\n') == 1);
    }
    return result;
  };
  Common seen;
  const auto look = [&](const Common& common) { seen = common; };
  CHECK(code({"--seed", "7", "--out", "there", "--quick"}, look) == 0);
  CHECK(seen.seed == 7);
  CHECK(seen.out == "there");
  CHECK(seen.quick);
  const auto never = [](const Common&) { throw std::logic_error("the job must not run"); };
  CHECK(code({"--help"}, never) == 0);
  CHECK(code({"--none"}, never) == 2);
  CHECK(code({"--seed", "-1"}, never) == 2);
  CHECK(code({"--seed", "x"}, never) == 2);
  CHECK(code({"stray"}, never) == 2);
  CHECK(code({}, [](const Common&) { throw BadInput("two\nlines"); }) == 2);
  CHECK(code({}, [](const Common&) { throw std::runtime_error("no"); }) == 1);
  CHECK(code({}, [](const Common&) { throw std::bad_alloc(); }) == 1);
}
