#include "nn/serialize.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "nn/file.hpp"
#include "nn/linear.hpp"
#include "nn/safetensors.hpp"
#include "optim/adam.hpp"
#include "optim/schedule.hpp"
#include "tests/check.hpp"

using namespace tapegrad;
using nn::from_safetensors;
using nn::load_checkpoint;
using nn::load_state;
using nn::save_checkpoint;
using nn::state_of;
using nn::to_safetensors;
namespace fs = std::filesystem;

namespace {

const std::string kReference = TAPEGRAD_SOURCE_DIR "/tests/reference/";
const std::string kText = "a \"b\" \\ \n \u00e9 \U0001F600";

/// A folder of its own that goes with the test.
struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "tapegrad_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name + "/";
  }
  ~Folder() { fs::remove_all(path); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
  std::string path;
};

void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string read(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

bool same_bits(const State& a, const State& b) {
  if (a.texts != b.texts || a.arrays.size() != b.arrays.size()) return false;
  for (std::size_t i = 0; i < a.arrays.size(); ++i) {
    const Array& x = a.arrays[i].second;
    const Array& y = b.arrays[i].second;
    if (a.arrays[i].first != b.arrays[i].first || x.shape() != y.shape()) return false;
    if (x.size() > 0 && std::memcmp(x.data(), y.data(), x.size() * sizeof(Real)) != 0) return false;
  }
  return true;
}

State parse(const std::string& file) {
  std::istringstream in(file);
  return from_safetensors(in);
}

/// A file of that header, and so many bytes of data.
std::string file_of(const std::string& header, std::size_t bytes = 0, std::optional<std::uint64_t> length = {}) {
  const std::uint64_t n = length.value_or(header.size());
  std::string file(8, '\0');
  std::memcpy(file.data(), &n, 8);
  return file + header + std::string(bytes, '\0');
}

std::string array_of(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

/// PyTorch's Sequential(Linear(3,2), ReLU, Linear(2,1)) of reference/checkpoint.py.
struct Net : nn::Module {
  Rng rng{3};
  nn::Linear first = child<nn::Linear>("0", 3, 2, rng);
  nn::Linear second = child<nn::Linear>("2", 2, 1, rng);
  Tensor operator()(const Tensor& x) { return second(relu(first(x))); }
};

void fill(Net& net) {
  int count = 0;
  for (Parameter& parameter : net.parameters()) {
    for (Real& element : parameter.mutable_value().storage()) element = static_cast<Real>(count++) / 8 - 1;
  }
}

struct Tied : nn::Module {
  Parameter a = param("a", Tensor{1, 2});
  Parameter b = param("b", a);
  Parameter c = param("c", Tensor{3});
};

/// What tapegrad.safetensors holds.
State kept_state() {
  Net net;
  fill(net);
  State state = state_of(net);
  State optimizer;
  optimizer.arrays.emplace_back("0.exp_avg", Array(Shape{2, 3}, Real(0.25)));
  optimizer.set_count("0.step", 7);
  state.add("optimizer.", optimizer);
  state.texts["note"] = kText;
  return state;
}

}  // namespace

TEST_CASE("A checkpoint comes back bit for bit") {
  Folder folder;
  State state;
  Rng rng(1);
  state.arrays.emplace_back("weight", rng.normal({3, 4, 5}));
  state.arrays.emplace_back("odd \"name\"\n\\ \u00e9", Tensor{kNaN, kInf, -kInf, -0.0, 1e-40}.value());
  state.arrays.emplace_back("scalar", Array(Shape{}, Real(2)));
  state.arrays.emplace_back("empty", Array(Shape{2, 0, 3}));
  state.arrays.emplace_back("", Tensor{1}.value());
  state.texts["text"] = kText + std::string(1, '\0') + "\x7f\t";
  state.texts[""] = "";
  state.set_number("number", 0.1);
  state.set_count("count", UINT64_MAX);
  const std::string path = folder.path + "model.safetensors";
  for (int i = 0; i < 2; ++i) {  // the second time over the first
    save_checkpoint(path, state);
    const State loaded = load_checkpoint(path);
    CHECK(same_bits(loaded, state));
    CHECK(loaded.number("number") == 0.1);
    CHECK(loaded.count("count") == UINT64_MAX);
    CHECK(folder.files() == 1);
  }
  CHECK(fs::file_size(path) % 4 == 0);
  save_checkpoint(path, {});
  CHECK(same_bits(load_checkpoint(path), {}));
}

TEST_CASE("A training goes on from a checkpoint bit for bit") {
  Folder folder;
  const std::string path = folder.path + "training.safetensors";
  struct Training {
    Net net;
    Rng rng{5};
    optim::AdamW optimizer{{{.parameters = {net.first.weight, net.second.weight}},
                            {.parameters = {net.first.bias, net.second.bias}, .weight_decay = 0.0}},
                           {.learning_rate = 0.05}};
    optim::Schedule schedule =
        optim::schedule::sequence({{optim::schedule::warmup(3), 3}, {optim::schedule::cosine(9), 9}});
    std::int64_t step = 0;
    double train() {
      optimizer.scale_learning_rates(schedule(step++));
      Tape tape;
      const Tensor x = rng.normal({4, 3});
      const Tensor loss = mean(square(net(x) - sum(x, {1}, true)));
      tape.backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      return loss.item();
    }
  };
  Training whole;
  for (int i = 0; i < 5; ++i) whole.train();
  State all = state_of(whole.net);
  all.add("optimizer.", whole.optimizer.state());
  all.add("rng.", state_of(whole.rng));
  all.set_count("step", static_cast<std::uint64_t>(whole.step));
  save_checkpoint(path, all);

  Training resumed;
  resumed.rng = Rng(99);
  State loaded = load_checkpoint(path);
  resumed.optimizer.load_state(loaded.take("optimizer."));
  load_state(resumed.rng, loaded.take("rng."));
  load_state(resumed.net, loaded);
  resumed.step = static_cast<std::int64_t>(loaded.count("step"));
  for (int i = 0; i < 7; ++i) CHECK(resumed.train() == whole.train());
  CHECK(same_bits(state_of(resumed.net), state_of(whole.net)));
  CHECK(same_bits(resumed.optimizer.state(), whole.optimizer.state()));
  CHECK(same_bits(state_of(resumed.rng), state_of(whole.rng)));
}

TEST_CASE("What PyTorch wrote is read") {
  const State state = load_checkpoint(kReference + "torch.safetensors");
  CHECK(state.texts == std::map<std::string, std::string>{{"format", "pt"}, {"note", kText}});
  REQUIRE(state.arrays.size() == 8);
  CHECK(state.find("double")->data()[0] == static_cast<Real>(1.0 / 3));
  CHECK(state.find("double")->data()[1] == static_cast<Real>(-1e-300));
  CHECK(state.find("scalar")->shape() == Shape{});
  CHECK(state.find("scalar")->data()[0] == Real(0.5));
  CHECK(state.find("empty")->shape() == Shape{0, 4});
  CHECK(state.find("na\"me\\ \n \u00e9 \U0001F600") != nullptr);
  Net net, right;
  fill(right);
  load_state(net, state, false);
  CHECK(same_bits(state_of(net), state_of(right)));
  CHECK(net(Tensor{{1, -2, 0.5}}).item() == Real(0.2578125));  // as reference/checkpoint.py has PyTorch's
}

TEST_CASE("What PyTorch could read is written") {  // reference/checkpoint.py checks the file with PyTorch
  const std::string file = read(kReference + "tapegrad.safetensors");
  if (!kDouble) CHECK(to_safetensors(kept_state()) == file);
  CHECK(same_bits(parse(file), kept_state()));
}

TEST_CASE("Write tests/reference/tapegrad.safetensors anew", "[.write]") {  // by the program of float
  save_checkpoint(kReference + "tapegrad.safetensors", kept_state());
}

TEST_CASE("Files of float and of double are read by both") {
  std::string header = "{\"f\":" + array_of("F32", "[2]", "[0,8]") + ",\"d\":" + array_of("F64", "[3]", "[8,32]") + "}";
  std::string file = file_of(header);
  const float f[] = {0.1f, -INFINITY};
  const double d[] = {0.1, 1e300, NAN};
  file.append(reinterpret_cast<const char*>(f), sizeof f).append(reinterpret_cast<const char*>(d), sizeof d);
  const State state = parse(file);
  CHECK(state.find("f")->data()[0] == static_cast<Real>(0.1f));
  CHECK(state.find("f")->data()[1] == -kInf);
  CHECK(state.find("d")->data()[0] == static_cast<Real>(0.1));
  CHECK(state.find("d")->data()[1] == (kDouble ? static_cast<Real>(1e300) : kInf));
  CHECK(std::isnan(state.find("d")->data()[2]));
  const std::size_t many = 5000;  // more than is converted at a time
  file = file_of("{\"x\":" + array_of(kDouble ? "F32" : "F64", "[5000]", kDouble ? "[0,20000]" : "[0,40000]") + "}");
  for (std::size_t i = 0; i < many; ++i) {
    const float single = static_cast<float>(i);
    const double twice = static_cast<double>(i);
    kDouble ? file.append(reinterpret_cast<const char*>(&single), 4)
            : file.append(reinterpret_cast<const char*>(&twice), 8);
  }
  const State long_one = parse(file);
  for (std::size_t i = 0; i < many; ++i) REQUIRE(long_one.arrays[0].second.data()[i] == static_cast<Real>(i));
}

TEST_CASE("Loading lists all that does not fit, and changes nothing") {
  Net net;
  const State before = state_of(net);
  State state;
  state.arrays.emplace_back("0.weight", Array(Shape{3, 2}, Real(7)));
  state.arrays.emplace_back("0.bias", Array(Shape{2}, Real(7)));
  state.arrays.emplace_back("line\nbreak", Array(Shape{1}, Real(7)));
  state.arrays.emplace_back("3.bias", Array(Shape{1}, Real(7)));
  check_refused(
      [&] { load_state(net, state); },
      "[load_state] names and shapes must be those expected; got missing \"2.weight\", \"2.bias\"; unexpected "
      "\"line\\u000abreak\", \"3.bias\"; wrongly shaped \"0.weight\" (3,2) for (2,3)");
  check_refused([&] { load_state(net, state, false); }, "expected; got wrongly shaped \"0.weight\" (3,2) for (2,3)");
  CHECK(same_bits(state_of(net), before));
  state.arrays.erase(state.arrays.begin());
  const std::uint32_t version = net.first.bias.version();
  load_state(net, state, false);
  CHECK(net.first.bias.value() == Array(Shape{2}, Real(7)));
  CHECK(net.first.bias.version() == version + 1);
  CHECK(same_bits({{{"0.weight", net.first.weight.value()}}, {}}, {{before.arrays[0]}, {}}));
}

TEST_CASE("A shared parameter is kept under each name, and read from any") {
  Tied tied;
  State state = state_of(tied);
  REQUIRE(state.arrays.size() == 3);
  CHECK(state.arrays[1].first == "b");
  state.arrays[0].second = state.arrays[1].second = Tensor{5, 6}.value();
  load_state(tied, state);
  CHECK(tied.a.value() == Tensor({5, 6}).value());
  for (const std::size_t dropped : {0, 1}) {  // as safetensors' save_model leaves one out
    State one = state;
    one.arrays.erase(one.arrays.begin() + static_cast<std::ptrdiff_t>(dropped));
    one.arrays[0].second = Tensor{8, 9}.value();
    load_state(tied, one);
    CHECK(tied.b.value() == Tensor({8, 9}).value());
  }
  State none = state;
  none.arrays.erase(none.arrays.begin(), none.arrays.begin() + 2);
  check_refused([&] { load_state(tied, none); }, "missing \"a\", \"b\"");
  state.arrays[1].second = Tensor{5, 7}.value();
  check_refused([&] { load_state(tied, state); },
                "the names of a shared parameter must have the same values; got \"a\" and \"b\"");
}

TEST_CASE("A generator goes on from its state") {
  Rng rng(7), other(8);
  rng.normal();
  load_state(other, state_of(rng));
  for (int i = 0; i < 10; ++i) CHECK(other.bits() == rng.bits());
  for (const std::string& text : {std::string(), std::string(63, '1'), std::string(64, 'g'), std::string(64, '0'),
                                  std::string(65, '1'), std::string(63, '1') + "-"}) {
    State bad;
    bad.texts["xoshiro256++"] = text;
    check_refused([&] { load_state(other, bad); }, "state");
  }
  check_refused([&] { load_state(other, {}); }, "[State] a text is missing; got \"xoshiro256++\"");
  CHECK(other.bits() == rng.bits());
}

TEST_CASE("States are put together and taken apart by prefix") {
  State part;
  part.arrays.emplace_back("x", Tensor{1}.value());
  part.texts["t"] = "1";
  State all = part;
  all.add("a.", part);
  all.add("b.", part);
  check_refused([&] { all.add("a.", part); }, "[State] a name can be given only once; got \"a.x\"");
  State texts;
  texts.texts["a.t"] = "2";
  check_refused([&] { all.add("", texts); }, "only once; got \"a.t\"");
  CHECK(same_bits(all.take("a."), part));
  CHECK(all.arrays.size() == 2);
  CHECK(same_bits(all.take("a."), {}));
  CHECK(same_bits(all.take("b."), part));
  CHECK(same_bits(all, part));
  check_refused([&] { all.set_number("n", NAN); }, "finite");
}

TEST_CASE("A state that the format can't hold is refused, and the old file stays") {
  Folder folder;
  const std::string path = folder.path + "m";
  save_checkpoint(path, {});
  const auto refused = [&](const std::string& name, const std::string& text, const std::string& rule) {
    State state;
    state.arrays.emplace_back("a", Tensor{1}.value());
    state.arrays.emplace_back(name, Tensor{1}.value());
    state.texts["t"] = text;
    check_refused([&] { save_checkpoint(path, state); }, rule);
  };
  refused("a", "", "[safetensors] a name can be given only once; got \"a\"");
  refused("__metadata__", "", "only once; got \"__metadata__\"");
  for (const char* bad : {"\xff", "\xc3", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"}) {
    refused(bad, "", "[safetensors] a name must be UTF-8");
    refused("b", bad, "[safetensors] a text must be UTF-8; got \"t\"");
  }
  CHECK(same_bits(load_checkpoint(path), {}));
  CHECK(folder.files() == 1);
}

TEST_CASE("A file that cannot be written is said so, and nothing is left behind") {
  Folder folder;
  CHECK_THROWS_WITH(save_checkpoint(folder.path + "none/m", {}),
                    Catch::Matchers::ContainsSubstring("cannot write " + folder.path + "none/m: No such file"));
  fs::create_directory(folder.path + "is_folder");
  CHECK_THROWS_AS(save_checkpoint(folder.path + "is_folder", {}), std::runtime_error);
  CHECK_THROWS_AS(save_checkpoint("", {}), std::runtime_error);
  CHECK(folder.files() == 1);
}

TEST_CASE("Writing follows links and keeps the file's permissions") {
  Folder folder;
  const auto permissions = [](const std::string& path) { return fs::status(path).permissions(); };
  write(folder.path + "file", "old");
  fs::permissions(folder.path + "file", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("file", folder.path + "link");
  fs::create_symlink(folder.path + "link", folder.path + "link_to_link");
  write_file(folder.path + "link_to_link", "new");
  CHECK(fs::is_symlink(folder.path + "link_to_link"));
  CHECK(read(folder.path + "file") == "new");
  CHECK(permissions(folder.path + "file") == (fs::perms::owner_read | fs::perms::owner_write));

  fs::create_symlink("to_come", folder.path + "dangling");
  write_file(folder.path + "dangling", "it came");
  CHECK(read(folder.path + "to_come") == "it came");
  std::ofstream(folder.path + "usual").put('x');
  CHECK(permissions(folder.path + "to_come") == permissions(folder.path + "usual"));

  fs::create_symlink("round", folder.path + "round");
  CHECK_THROWS_WITH(write_file(folder.path + "round", ""), Catch::Matchers::ContainsSubstring("symbolic links"));
  CHECK(folder.files() == 7);
}

TEST_CASE("What killed programs left is removed, and what others are writing is not") {
  Folder folder;
  const std::string dead = folder.path + ".file.123.tmp", alive = folder.path + ".file.456.tmp";
  write(dead, "half");
  write(alive, "half");
  const int writer = open(alive.c_str(), O_RDONLY);
  REQUIRE(flock(writer, LOCK_EX) == 0);
  write_file(folder.path + "file", "whole");
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(alive));
  close(writer);
  write_file(folder.path + "file", "whole");
  CHECK(folder.files() == 1);
}

TEST_CASE("A folder is replaced as a whole, and the one before it kept") {
  Folder all;
  const std::string path = all.path + "model", previous = path + ".previous";
  const auto with = [&](const std::string& text) {
    return [=](const std::string& folder) {
      write_file(folder + "/first", text);
      write_file(folder + "/second", text);
    };
  };
  fs::create_directory(all.path + ".model.123.tmp");  // a killed program's
  write_folder(path, with("one"));
  CHECK(all.files() == 1);
  write_folder(path, with("two"));
  CHECK(read(path + "/first") + read(previous + "/second") == "twoone");
  fs::create_symlink("model", all.path + "link");
  write_folder(all.path + "link", with("three"));
  CHECK(read(path + "/second") + read(previous + "/first") == "threetwo");
  CHECK(all.files() == 3);

  const auto fails = [&](const std::string& folder) {
    with("four")(folder);
    throw std::runtime_error("no more");
  };
  CHECK_THROWS_WITH(write_folder(path, fails), "no more");
  CHECK_THROWS_WITH(write_folder("/dev/null/x", with("")), "cannot write /dev/null/x: Not a directory");
  CHECK(read(path + "/first") + read(previous + "/first") == "threetwo");
  CHECK(all.files() == 3);

  fs::create_directory(all.path + "empty");
  write_folder(all.path + "empty", with("five"));
  CHECK(read(all.path + "empty/first") == "five");
  CHECK(all.files() == 4);
}

TEST_CASE("A file that is not there, or not plain, is refused") {
  Folder folder;
  REQUIRE(mkfifo((folder.path + "pipe").c_str(), 0600) == 0);
  for (const std::string& path : {folder.path + "none", folder.path, folder.path + "pipe", std::string()}) {
    check_refused([&] { load_checkpoint(path); },
                  "[load_checkpoint] the file must be there, plain and readable; got \"" + path + "\"");
  }
  write(folder.path + "bad", "not one");
  check_refused([&] { load_checkpoint(folder.path + "bad"); }, "[load_checkpoint \"" + folder.path + "bad\"] the file");
}

TEST_CASE("Damaged and hostile files are refused in one line") {
  const auto refused = [](const std::string& file, const std::string& rule) {
    CAPTURE(file.substr(0, 200));
    const std::size_t held = pooled_bytes();
    check_refused([&] { parse(file); }, rule);
    CHECK(pooled_bytes() - held <= 4096 + 2 * file.size());
  };
  const auto header = [&](const std::string& text, const std::string& rule, std::size_t bytes = 0) {
    refused(file_of(text, bytes), rule);
  };
  const auto one = [&](const std::string& dtype, const std::string& shape, const std::string& offsets,
                       std::size_t bytes, const std::string& rule) {
    header("{\"x\":" + array_of(dtype, shape, offsets) + "}", rule, bytes);
  };

  SECTION("lengths") {
    refused("", "[safetensors] the file must have a header's length of 8 bytes; got 0");
    refused("1234567", "got 7");
    refused(file_of("{}", 0, 3), "the header's length must be at most the file's; got 3 and 2");
    refused(file_of("{}", 0, std::uint64_t{1} << 60), "at most the file's");
    refused(file_of("{}", 0, UINT64_MAX), "at most the file's");
    refused(file_of("{}", 0, UINT64_MAX - 7), "at most the file's");
    refused(file_of("{}", 0, 0), "must start with a brace");
    refused(file_of("{}", 5), "the arrays must end where the file ends; got 0 and 5");
    refused(file_of(std::string(100'000'001, ' ')), "the header must be at most 100 MB");
  }
  SECTION("JSON") {
    for (const char* text : {"{",
                             "{}}",
                             "{},",
                             "[]",
                             " {}",
                             "null",
                             "{\"x\"",
                             "{\"x\":",
                             "{\"x\":}",
                             "{\"x\":{}}",
                             "{,}",
                             "{\"x\":null}",
                             "{\"x\":1}",
                             "{x:1}",
                             "{'x':1}",
                             "{\"x",
                             "{\"x\\",
                             "{\"\\q\":1}",
                             "{\"\\u12\":1}",
                             "{\"\\u12g4\":1}",
                             "{\"\\ud800\":1}",
                             "{\"\\ud800\\u0041\":1}",
                             "{\"\\udc00\":1}",
                             "{\"\\ud800\\ud800\":1}",
                             "{\"a\nb\":1}",
                             "\xef\xbb\xbf{}",
                             "{}//",
                             "{\"\xff\":1}",
                             "{\"__metadata__\":{\"a\":1}}",
                             "{\"__metadata__\":null}",
                             "{\"__metadata__\":{\"a\":\"b\",}}",
                             "{\"__metadata__\":{\"a\":\"b\",\"a\":\"b\"}}",
                             "{\"__metadata__\":{},\"__metadata__\":{}}",
                             "{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}"}) {
      header(text, "[safetensors] the header must");
    }
    header(std::string("{\0}", 3), "the header must");
    header(std::string(1'000'000, '['), "must start with a brace");
    header("{\"x\":" + std::string(1'000'000, '['), "the header must have {; got byte 5");
    std::string deep = "{\"x\":{\"shape\":";
    header(deep + std::string(1'000'000, '['), "a plain number");
    for (int i = 0; i < 100'000; ++i) deep += "{\"x\":";
    header(deep, "the header must have [");
  }
  SECTION("arrays") {
    const std::string good = array_of("F32", "[1]", "[0,4]");
    header("{\"x\":" + good + ",\"x\":" + good + "}", "the header must give a name only once", 4);
    header("{\"x\":" + good + ",\"\\u0078\":" + good + "}", "the header must give a name only once", 4);
    header("{\"x\":" + good + ",}", "the header must have \"", 4);
    const char* rule = "must have dtype, shape and data_offsets for each array, once, and nothing else";
    header("{\"x\":{\"dtype\":\"F32\",\"shape\":[1]}}", rule, 4);
    header("{\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", rule, 4);
    header("{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"shape\":[1]}}", rule, 4);
    header("{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":[1]}}", rule, 4);
    for (const char* dtype : {"F16", "BF16", "I64", "U8", "BOOL", "f32", "F320", "", "F8_E4M3"}) {
      one(dtype, "[1]", "[0,4]", 4, "[safetensors] an array must be F32 or F64: \"x\"; got \"" + std::string(dtype));
    }
    one("F64", "[1]", "[0,4]", 4, "an array's bytes must be as many as its shape says: \"x\"; got 4 and 8");
    one("F32", "[2]", "[0,4]", 4, "as many as its shape says");
    one("F32", "[]", "[0,0]", 0, "as many as its shape says");
    one("F32", "[0]", "[0,4]", 4, "as many as its shape says");
    for (const char* number : {"-1", "1.0", "1e0", "01", "+1", "\"1\"", "", "null", "18446744073709551616",
                               "99999999999999999999999", "0x1", "true"}) {
      one("F32", "[" + std::string(number) + ",1]", "[0,4]", 4, "the header must have");
      one("F32", "[1]", "[0," + std::string(number) + "]", 4, number == std::string("01") ? "plain number" : "");
    }
    one("F32", "[1]", "[0]", 4, "2 offsets");
    one("F32", "[1]", "[0,4,4]", 4, "2 offsets");
    one("F32", "[1]", "[]", 4, "2 offsets");
    one("F32", "[1]", "[4,0]", 4, "an array's offsets must rise: \"x\"; got 4 and 0");
    one("F32", "[1]", "[0,4]", 3, "the arrays must end where the file ends; got 4 and 3");
    one("F32", "[1]", "[0,4]", 5, "the arrays must end where the file ends; got 4 and 5");
    one("F32", "[1]", "[4,8]", 8, "without holes");
    one("F32", "[1]", "[18446744073709551612,18446744073709551615]", 8, "as many as its shape says");
    one("F32", "[4611686018427387904]", "[0,0]", 0, "an array must fit the memory");    // 2^62 * 4 = 0
    one("F32", "[4294967296,4294967296]", "[0,0]", 0, "an array must fit the memory");  // 2^64 = 0
    one("F64", "[2305843009213693953]", "[0,8]", 8, "an array must fit the memory");    // 2^64 + 8 = 8
    one("F32", "[0,4294967296,4294967296]", "[0,0]", 0, "an array must fit the memory");
    one("F32", "[18446744073709551615]", "[0,4]", 4, "an array must fit the memory");
    one("F32", "[1000000000000]", "[0,4000000000000]", 0, "the arrays must end where the file ends");  // 4 TB
    std::string axes = "[1";
    for (int i = 0; i < 63; ++i) axes += ",1";
    CHECK(parse(file_of("{\"x\":" + array_of("F32", axes + "]", "[0,4]") + "}", 4)).arrays[0].second.dimension() == 64);
    one("F32", axes + ",1]", "[0,4]", 4, "at most 64 axes");
    header("{\"x\":" + good + ",\"y\":" + good + "}", "arrays must lie one after the other, without holes: \"y\"", 4);
    header("{\"x\":" + array_of("F32", "[2]", "[0,8]") + ",\"y\":" + array_of("F32", "[2]", "[4,12]") + "}",
           "one after the other", 12);
    header("{\"x\":" + good + ",\"y\":" + array_of("F32", "[1]", "[8,12]") + "}", "without holes", 12);
    header("{\"a\\nb\":" + array_of("F16", "[2]", "[0,4]") + "}", "F32 or F64: \"a\\u000ab\"", 4);
  }
}

TEST_CASE("Whatever the format allows is read") {
  const State spaced =
      parse(file_of("{ \"b\" : { \"data_offsets\" : [ 4 , 8 ] ,\n\t\"shape\":[ ] , \"dtype\":\"F32\"} ,\r\n"
                    "\"__metadata__\": { }, \"a\":" +
                        array_of("F\\u00332", "[1,1]", "[0,4]") + "}  ",
                    8));
  REQUIRE(spaced.arrays.size() == 2);
  CHECK(spaced.arrays[0].first == "b");  // the header's order, not the data's
  CHECK(spaced.arrays[1].second.shape() == Shape{1, 1});
  CHECK(parse(file_of("{\"__metadata__\":{\"\\u00e9\":\"\\ud83d\\ude00\\/\\b\\f\\u0000\"}}")).texts.at("\u00e9") ==
        std::string("\U0001F600/\b\f\0", 8).substr(0, 4) + std::string("/\b\f\0", 4));
}

TEST_CASE("Every file cut short, and most with a byte changed, are refused or read, without a crash") {
  const std::string whole = read(kReference + "torch.safetensors");
  for (std::size_t length = 0; length < whole.size(); ++length)
    check_refused([&] { parse(whole.substr(0, length)); }, "");
  Rng rng(11);
  std::size_t refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string changed = whole;
    changed[rng.below(whole.size())] = static_cast<char>(rng.below(256));
    try {
      parse(changed);
    } catch (const Error& error) {
      ++refused;
      REQUIRE(std::string(error.what()).find('\n') == std::string::npos);
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("The fuzzer's corpus is refused or read as it was") {
  std::size_t files = 0, good = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(TAPEGRAD_SOURCE_DIR "/tests/fuzz/corpus")) {
    CAPTURE(entry.path().string());
    ++files;
    State state;
    try {
      state = load_checkpoint(entry.path().string());
    } catch (const Error& error) {
      REQUIRE(std::string(error.what()).find('\n') == std::string::npos);
      continue;
    }
    ++good;
    REQUIRE(same_bits(parse(to_safetensors(state)), state));
  }
  CHECK(files >= 20);
  CHECK(good >= 3);
}

TEST_CASE("A save that is killed at any moment leaves the old file or the new one") {
  Folder folder;
  const std::string path = folder.path + "model.safetensors";
  const auto state_number = [](std::uint64_t i) {
    State state;
    state.set_count("i", i);
    for (const char* name : {"a", "b", "c"})
      state.arrays.emplace_back(name, Array(Shape{100, 300}, static_cast<Real>(i)));
    return state;
  };
  const auto start = std::chrono::steady_clock::now();
  save_checkpoint(path, state_number(0));
  const std::chrono::microseconds one =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
  const std::uint64_t longest = 5000 + 8 * static_cast<std::uint64_t>(one.count());  // many saves, on any disk
  Rng rng(13);
  std::uint64_t last = 0;
  for (int kills = 0; kills < 30; ++kills) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      try {
        for (std::uint64_t i = last + 1;; ++i) save_checkpoint(path, state_number(i));
      } catch (...) {
        _exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(rng.below(longest)));
    kill(child, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    const State state = load_checkpoint(path);
    const std::uint64_t i = state.count("i");
    REQUIRE(i >= last);
    REQUIRE(same_bits(state, state_number(i)));
    last = i;
  }
  CHECK(last > 0);
  save_checkpoint(path, state_number(last));
  CHECK(folder.files() == 1);  // nor is anything left of the saves that were killed
}

TEST_CASE("A device or a pipe is not replaced by a file") {
  const std::string pipe = std::filesystem::temp_directory_path() / ("tapegrad_pipe_" + std::to_string(getpid()));
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(write_file(pipe, "content"), Catch::Matchers::ContainsSubstring("it is a device or a pipe"));
  CHECK(std::filesystem::is_fifo(pipe));
  std::filesystem::remove(pipe);
}
