#include "examples/support/csv.hpp"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "examples/support/files.hpp"
#include "tests/catch.hpp"

namespace fs = std::filesystem;
using namespace examples;
using Catch::Matchers::ContainsSubstring;
using Numbers = std::vector<double>;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("tapegrad_csv_" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& content, const std::string& name = "data.csv") const {
    std::ofstream(path / name, std::ios::binary) << content;
    return (path / name).string();
  }
  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), {})); }
};

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

Columns columns_of(const std::string& content, const std::string& x = "", const std::string& y = "") {
  return choose_columns(read_csv(Folder().file(content)), x, y);
}

// What is said about `content`, from the file's name on.
std::string refusal(const std::string& content, const std::string& x = "", const std::string& y = "") {
  try {
    columns_of(content, x, y);
  } catch (const BadInput& error) {
    const std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    return message.substr(message.find("data.csv") + 8);
  }
  return "accepted";
}

}  // namespace

TEST_CASE("read_csv understands the forms that tables come in", "[csv]") {
  const Numbers x = {1, 2, 3}, y = {4.5, -5, 6e2};
  for (const std::string content : {
           "a,b\n1,4.5\n2,-5\n3,6e2\n",
           "1,4.5\n2,-5\n3,6e2",
           "a;b\r\n1;4.5\r\n2;-5\r\n3;6e2\r\n",
           "a;b\n1;4,5\n2;-5\n3;6e2\n",
           "a\tb\r1\t4.5\r2\t-5\r3\t6e2\r",
           "a\tb\n1\t4,5\n2\t-5\n3\t6e2\n",
           "\xEF\xBB\xBF\"a\",\"b\"\n\"1\",\"4.5\"\n\"2\",-5\n+3 , 6e2\n\n\n  \n",
           "\"the \"\"a\"\", split\nover lines\",b\n1,4.5\n2,-5\n3,6e2\n",
           "\"\",\"a\",\"b\"\n\"9\",1,4.5\n\"8\",2,-5\n\"7\",3,6e2\n",  // as R writes it, with row names
           "name,a,b\nJo,1,4.5\nAl,2,-5\nMo,3,6e2\n",
           "Jo,1,4.5\nAl,2,-5\nMo,3,6e2\n",
       }) {
    CAPTURE(content);
    const Columns columns = columns_of(content);
    CHECK(columns.x == x);
    CHECK(columns.y == y);
  }
}

TEST_CASE("columns are chosen by name, else the first numeric ones", "[csv]") {
  const std::string content = "who,u,v,w\na,1,4,7\nb,2,5,8\nc,3,6,9\n";
  const auto names = [&](const std::string& x, const std::string& y) {
    const Columns columns = columns_of(content, x, y);
    return columns.x_name + columns.y_name;
  };
  CHECK(names("", "") == "uv");
  CHECK(names("w", "") == "wu");
  CHECK(names("", "u") == "vu");
  CHECK(names("w", "v") == "wv");
  CHECK(columns_of("1,2\n3,4\n5,6\n", "column2", "column1").x == Numbers{2, 4, 6});
  CHECK(refusal(content, "z") == ": no column is named 'z'; there are: who, u, v, w");
  std::string wide = "c0", row = "0";  // of many columns, the first 20 are listed
  for (int c = 1; c < 100; ++c) {
    wide += ",c" + std::to_string(c);
    row += ",1";
  }
  const std::string listed = refusal(wide + "\n" + row + "\n" + row + "\n" + row + "\n", "z");
  CHECK(listed.size() < 200);
  CHECK(listed.substr(listed.size() - 20) == "c18, c19 and 80 more");
  CHECK(refusal(content, "u", "u") == ": x and y are the same column, 'u'");
  CHECK(refusal(content, "who", "u") == ", line 2: 'a' in column 'who' is not a number");
  CHECK(refusal("a,a,b\n1,2,3\n4,5,6\n7,8,9\n", "a", "b") == ": more than one column is named 'a'");
}

TEST_CASE("a table that cannot be used is refused in one line that says where", "[csv]") {
  CHECK(refusal("") == ": is empty");
  CHECK(refusal("\n \r\n\n") == ": is empty");
  CHECK_THAT(refusal("a\n1\n2\n3\n"), ContainsSubstring(", line 1: one column"));
  CHECK(refusal("a,b\n1,2\n3,x\n5,6\n") == ", line 3: 'x' in column 'b' is not a number");
  CHECK(refusal("a,b\n1,2\n3,\n5,6\n") == ", line 3: a cell in column 'b' is empty");
  CHECK(refusal("a,b\n1,2\n\n3,NaN\n5,6\n") == ", line 4: 'NaN' in column 'b' is not a finite number");
  CHECK(refusal("a,b\n1,2\n-inf,1\n5,6\n") == ", line 3: '-inf' in column 'a' is not a finite number");
  CHECK(refusal("a,b\n1,2\n3,1e999\n5,6\n") == ", line 3: '1e999' in column 'b' is not a finite number");
  CHECK(refusal("a,b\n1,2\n0x10,4\n5,6\n") == ", line 3: '0x10' in column 'a' is not a number");
  CHECK(refusal("a,b\n1,2\n3,1-2\n5,6\n") == ", line 3: '1-2' in column 'b' is not a number");
  CHECK(refusal("a;b\n1;2\n3;1.234,5\n5;6\n") == ", line 3: '1.234,5' in column 'b' is not a number");
  CHECK(refusal("a,b\n1,2\n3,4,5\n6,7\n") == ", line 3: 3 cells, but line 1 has 2");
  CHECK(refusal("a,b\n\"1\n\",2\n3\n") == ", line 4: 1 cells, but line 1 has 2");
  CHECK(refusal("a,b\n1,2\n3,4\n") == ": at least 3 rows of data are needed; got 2");
  CHECK(refusal("x,2\n3,4\n5,6\n7,8\n") == ", line 1: neither a header nor data: 'x' among numbers");
  CHECK(refusal("a,b\nu,1\nv,2\nw,3\n") == ": two columns of numbers are needed; the columns are: a, b");
  CHECK(refusal("n;a;b\nu;1;1.234,5\nv;2;2.345,6\nw;3;3.456,7\n") ==
        ", line 2: two columns of numbers are needed, but '1.234,5' in column 'b' is not a number");
  CHECK_THAT(refusal("a;b\n1,5;2\n3;1.234\n5;6\n"), ContainsSubstring(", line 3: decimal commas and decimal points"));
  CHECK(refusal("a,b\n1,2\n3,\"4\n5,6\n") == ", line 3: a quote is opened and never closed");
  CHECK(refusal("a,b\n1,2\n3,\"4\"5\n5,6\n") == ", line 3: text after the closing quote of '4'");
  CHECK(refusal(std::string("a,b\n1,2\n\0\1,2\n", 13)) == ", line 3: binary data; expected text");
}

TEST_CASE("what is no readable file is refused", "[csv]") {
  const Folder folder;
  const std::string here = folder.path.string();
  CHECK_THROWS_WITH(read_csv(here + "/none.csv"), here + "/none.csv: no such file");
  CHECK_THROWS_WITH(read_csv(here), here + ": is a folder, not a file");
  CHECK_THROWS_AS(read_csv("/dev/zero"), BadInput);
}

TEST_CASE("numbers are rounded to the digits that they have", "[csv]") {
  CHECK(rounded({1.0 / 3, -200.0 / 3}, 1000) == std::vector<double>{0.333333333, -66.6666667});
  CHECK(rounded({1e6 + 1.0 / 3}, 1) == std::vector<double>{1000000.33333333});
  CHECK(rounded({0, 2e-30 / 3}, 1e-30) == std::vector<double>{0, 6.66666667e-31});
  CHECK(std::isnan(rounded({std::nan(""), 1})[0]));
}

TEST_CASE("write_csv writes what read_csv reads back exactly", "[csv]") {
  const Folder folder;
  const std::string path = (folder.path / "out.csv").string();
  const Numbers x = {0.1, 1.0 / 3, -1e-300}, y = {1e300, 123456789.125, 5};
  write_csv(path, {"a, \"quoted\"", "b"}, {x, y});
  const Columns back = choose_columns(read_csv(path));
  CHECK(back.x_name == "a, \"quoted\"");
  CHECK(back.x == x);
  CHECK(back.y == y);
  CHECK(read(path).find("0.1,1e+300\n") != std::string::npos);
  CHECK(folder.files() == 1);
  CHECK_THROWS_AS(write_csv(path, {"a", "b"}, {{1, 2}, {1}}), std::invalid_argument);
  CHECK(choose_columns(read_csv(path)).x == x);
}

TEST_CASE("a failed write leaves the old file and nothing beside it", "[csv]") {
  const Folder folder;
  fs::create_directories(folder.path / "taken" / "inside");
  CHECK_THROWS_WITH(write_file((folder.path / "taken").string(), "new"), ContainsSubstring("cannot write "));
  CHECK(fs::is_directory(folder.path / "taken" / "inside"));
  CHECK(folder.files() == 1);
  CHECK_THROWS_AS(write_file((folder.path / "none" / "x").string(), "new"), std::runtime_error);
}

TEST_CASE("an output folder is created, or refused", "[csv]") {
  const Folder folder;
  const fs::path deep = folder.path / "a" / "b";
  prepare_output_folder(deep.string());
  CHECK(fs::is_directory(deep));
  CHECK(fs::is_empty(deep));
  const std::string file = folder.file("1");
  CHECK_THROWS_AS(prepare_output_folder(file), BadInput);
  CHECK_THROWS_AS(prepare_output_folder(file + "/sub"), BadInput);
  CHECK_THROWS_AS(prepare_output_folder(""), BadInput);
  CHECK(read(file) == "1");
}

TEST_CASE("cars.csv is Ezekiel's table", "[csv]") {
  const Columns cars = choose_columns(read_csv(TAPEGRAD_SOURCE_DIR "/examples/data/cars.csv"));
  CHECK(cars.x_name == "speed");
  CHECK(cars.y_name == "dist");
  REQUIRE(cars.x.size() == 50);
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < 50; ++i) {
    x += cars.x[i];
    y += cars.y[i];
    xx += cars.x[i] * cars.x[i];
    yy += cars.y[i] * cars.y[i];
    xy += cars.x[i] * cars.y[i];
  }
  CHECK(x / 50 == Approx(15.4));
  CHECK(y / 50 == Approx(42.98));
  CHECK(std::sqrt((xx - x * x / 50) / 49) == Approx(5.287644).epsilon(1e-6));
  CHECK(std::sqrt((yy - y * y / 50) / 49) == Approx(25.76938).epsilon(1e-6));
  CHECK((xy - x * y / 50) / std::sqrt((xx - x * x / 50) * (yy - y * y / 50)) == Approx(0.8068949).epsilon(1e-6));
}
