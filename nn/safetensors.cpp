#include "nn/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <istream>
#include <unordered_set>

#include "nn/utf8.hpp"

namespace TAPEGRAD::nn {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t kLongestHeader = 100'000'000;  // the reference implementation's limit
constexpr std::size_t kMostAxes = 64;
constexpr const char* kTexts = "__metadata__";

bool is_utf8(std::string_view text) { return utf8::valid_bytes(text) == text.size(); }

struct Entry {
  std::string name;
  std::string dtype;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Reads the header: just the JSON that the format allows, so that nothing can nest.
class Header {
 public:
  Header(const std::string& text, const std::string& who) : text_(text), who_(who) {
    check(is_utf8(text), "must be UTF-8");
    check(!text.empty() && text[0] == '{', "must start with a brace");
    expect('{');
    if (!accept('}')) {
      do {
        std::string name = string();
        check(names_.insert(name).second, "must give a name only once");
        expect(':');
        if (name == kTexts) {
          read_texts();
        } else {
          read_entry(std::move(name));
        }
      } while (accept(','));
      expect('}');
    }
    skip_space();
    check(at_ == text_.size(), "must end after its object");
  }

  std::vector<Entry> entries;
  std::map<std::string, std::string> texts;

 private:
  void check(bool ok, const char* rule) const {
    if (!ok) refuse(who_, std::string("the header ") + rule, "byte " + std::to_string(at_));
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size()); }

  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    const char rule[] = {'m', 'u', 's', 't', ' ', 'h', 'a', 'v', 'e', ' ', c, '\0'};
    check(accept(c), rule);
  }

  char next() {
    check(at_ < text_.size(), "must not end within a string");
    return text_[at_++];
  }

  std::uint32_t four_digits() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = next();
      const bool digit = c >= '0' && c <= '9', lower = c >= 'a' && c <= 'f', upper = c >= 'A' && c <= 'F';
      check(digit || lower || upper, "must have 4 hexadecimal digits after \\u");
      code = code * 16 + static_cast<std::uint32_t>(digit ? c - '0' : (lower ? c - 'a' : c - 'A') + 10);
    }
    return code;
  }

  void read_escape(std::string& result) {
    const char c = next();
    constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    const std::size_t plain = letters.find(c);
    if (plain != letters.npos) {
      result += meanings[plain];
      return;
    }
    check(c == 'u', "must have an escape of JSON after a backslash");
    std::uint32_t code = four_digits();
    if (code >= 0xd800 && code < 0xe000) {  // half of a pair
      const bool pair = code < 0xdc00 && next() == '\\' && next() == 'u';
      const std::uint32_t second = pair ? four_digits() : 0;
      check(second >= 0xdc00 && second < 0xe000, "must not have half a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
    }
    result += utf8::encoded(code);
  }

  std::string string() {
    expect('"');
    std::string result;
    for (;;) {
      const char c = next();
      if (c == '"') return result;
      check(static_cast<unsigned char>(c) >= 0x20, "must not have a control character in a string");
      if (c == '\\') {
        read_escape(result);
      } else {
        result += c;
      }
    }
  }

  std::uint64_t number() {
    skip_space();
    const std::size_t start = at_;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
      const bool over =
          __builtin_mul_overflow(value, std::uint64_t{10}, &value) || __builtin_add_overflow(value, digit, &value);
      check(!over, "must have numbers below 2^64");
    }
    check(at_ > start && (text_[start] != '0' || at_ == start + 1), "must have a plain number, 0 or above");
    return value;
  }

  std::vector<std::uint64_t> numbers(std::size_t most) {
    std::vector<std::uint64_t> list;
    expect('[');
    if (accept(']')) return list;
    do {
      check(list.size() < most, "must have 2 offsets, and at most 64 axes");
      list.push_back(number());
    } while (accept(','));
    expect(']');
    return list;
  }

  void read_texts() {
    expect('{');
    if (accept('}')) return;
    do {
      std::string name = string();
      expect(':');
      check(texts.emplace(std::move(name), string()).second, "must give a name only once");
    } while (accept(','));
    expect('}');
  }

  void read_entry(std::string name) {
    Entry entry;
    entry.name = std::move(name);
    bool dtype = false, shape = false, offsets = false;
    const char* rule = "must have dtype, shape and data_offsets for each array, once, and nothing else";
    expect('{');
    do {
      const std::string key = string();
      bool& seen = key == "dtype" ? dtype : key == "shape" ? shape : offsets;
      check(!seen && (key == "dtype" || key == "shape" || key == "data_offsets"), rule);
      seen = true;
      expect(':');
      if (key == "dtype") {
        entry.dtype = string();
      } else if (key == "shape") {
        const std::vector<std::uint64_t> extents = numbers(kMostAxes);
        entry.shape = Shape(extents.begin(), extents.end());
      } else {
        const std::vector<std::uint64_t> list = numbers(2);
        check(list.size() == 2, "must have 2 offsets");
        entry.begin = list[0];
        entry.end = list[1];
      }
    } while (accept(','));
    expect('}');
    check(dtype && shape && offsets, rule);
    entries.push_back(std::move(entry));
  }

  const std::string& text_;
  const std::string& who_;
  std::size_t at_ = 0;
  std::unordered_set<std::string> names_;
};

/// Refuses an entry whose bytes are not as many as its shape says.
void require_size(const Entry& entry, const std::string& who) {
  const std::string name = in_quotes(entry.name);
  require(entry.dtype == "F32" || entry.dtype == "F64", who, "an array must be F32 or F64: " + name,
          in_quotes(entry.dtype));
  std::uint64_t bytes = entry.dtype == "F32" ? 4 : 8;
  bool over = false;  // of the extents but 0 too: the strides of an empty array are such products
  for (const std::size_t extent : entry.shape) over |= extent && __builtin_mul_overflow(bytes, extent, &bytes);
  require(!over && bytes <= PTRDIFF_MAX / 2, who, "an array must fit the memory: " + name, entry.shape);
  if (std::find(entry.shape.begin(), entry.shape.end(), 0u) != entry.shape.end()) bytes = 0;
  require(entry.end - entry.begin == bytes, who, "an array's bytes must be as many as its shape says: " + name,
          entry.end - entry.begin, bytes);
}

/// Refuses entries that overlap, or do not fill the data from its first byte to its last.
void require_full(const std::vector<Entry>& entries, std::uint64_t bytes, const std::string& who) {
  std::vector<const Entry*> sorted;
  for (const Entry& entry : entries) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(),
            [](const Entry* a, const Entry* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
  std::uint64_t at = 0;
  for (const Entry* entry : sorted) {
    require(entry->begin == at, who, "arrays must lie one after the other, without holes: " + in_quotes(entry->name),
            entry->begin, at);
    at = entry->end;
  }
  require(at == bytes, who, "the arrays must end where the file ends", at, bytes);
}

void read_bytes(std::istream& in, void* to, std::uint64_t bytes, const std::string& who) {
  in.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  require(in.good(), who, "the file ended, or could not be read");
}

template <class Stored>
void read_elements(std::istream& in, Array& array, const std::string& who) {
  if constexpr (std::is_same_v<Stored, Real>) {
    read_bytes(in, array.data(), array.size() * sizeof(Real), who);
  } else {
    Stored chunk[1024];
    for (std::size_t done = 0; done < array.size();) {
      const std::size_t count = std::min(array.size() - done, std::size(chunk));
      read_bytes(in, chunk, count * sizeof(Stored), who);
      for (std::size_t k = 0; k < count; ++k) array.data()[done + k] = static_cast<Real>(chunk[k]);
      done += count;
    }
  }
}

}  // namespace

std::string to_safetensors(const State& state) {
  std::string header = "{";
  const auto start = [&](const std::string& name) {
    require(is_utf8(name), "safetensors", "a name must be UTF-8");
    if (header.back() != '{') header += ',';
    header += in_quotes(name) + ':';
  };
  if (!state.texts.empty()) {
    start(kTexts);
    header += '{';
    for (const auto& [name, text] : state.texts) {
      start(name);
      require(is_utf8(text), "safetensors", "a text must be UTF-8", in_quotes(name));
      header += in_quotes(text);
    }
    header += '}';
  }
  std::unordered_set<std::string_view> names{kTexts};
  std::size_t bytes = 0;
  for (const auto& [name, array] : state.arrays) {
    require(names.insert(name).second, "safetensors", "a name can be given only once", in_quotes(name));
    start(name);
    header.append("{\"dtype\":\"").append(sizeof(Real) == 4 ? "F32" : "F64").append("\",\"shape\":[");
    for (const std::size_t extent : array.shape()) {
      if (header.back() != '[') header += ',';
      header += std::to_string(extent);
    }
    const std::size_t end = bytes + array.size() * sizeof(Real);
    header.append("],\"data_offsets\":[").append(std::to_string(bytes)).append(",").append(std::to_string(end));
    header.append("]}");
    bytes = end;
  }
  header += '}';
  header.append((8 - header.size() % 8) % 8, ' ');  // so that the numbers are aligned where the file is mapped
  const std::uint64_t length = header.size();
  require(length <= kLongestHeader, "safetensors", "the header must be at most 100 MB", length);

  std::string file(sizeof length + length + bytes, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  std::memcpy(file.data() + sizeof length, header.data(), length);
  char* to = file.data() + sizeof length + length;
  for (const auto& [name, array] : state.arrays) {
    if (array.size() == 0) continue;
    std::memcpy(to, array.data(), array.size() * sizeof(Real));
    to += array.size() * sizeof(Real);
  }
  return file;
}

std::map<std::string, std::string> read_safetensors(std::istream& in, const std::string& who,
                                                    const std::vector<std::string>& skipped, const Places& places) {
  in.seekg(0, std::ios::end);
  const auto size = static_cast<std::int64_t>(in.tellg());
  in.seekg(0);
  require(in.good() && size >= 0, who, "the file could not be read");
  std::uint64_t length = 0;
  require(size >= 8, who, "the file must have a header's length of 8 bytes", size);
  read_bytes(in, &length, sizeof length, who);
  const std::uint64_t rest = static_cast<std::uint64_t>(size) - sizeof length;
  require(length <= rest, who, "the header's length must be at most the file's", length, rest);
  require(length <= kLongestHeader, who, "the header must be at most 100 MB", length);
  std::string text(length, '\0');
  read_bytes(in, text.data(), length, who);

  Header header(text, who);
  const auto is_skipped = [&](const Entry& entry) {
    return std::find(skipped.begin(), skipped.end(), entry.name) != skipped.end();
  };
  for (const Entry& entry : header.entries) {
    require(entry.begin <= entry.end, who, "an array's offsets must rise: " + in_quotes(entry.name), entry.begin,
            entry.end);
    if (!is_skipped(entry)) require_size(entry, who);
  }
  require_full(header.entries, rest - length, who);
  std::erase_if(header.entries, is_skipped);
  NamedShapes arrays;
  for (const Entry& entry : header.entries) arrays.emplace_back(entry.name, entry.shape);
  const std::vector<Array*> to = places(arrays);
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i]->size() == 0) continue;
    in.seekg(static_cast<std::streamoff>(sizeof length + length + header.entries[i].begin));
    header.entries[i].dtype == "F32" ? read_elements<float>(in, *to[i], who) : read_elements<double>(in, *to[i], who);
  }
  return std::move(header.texts);
}

State from_safetensors(std::istream& in, const std::string& who) {
  State state;
  state.texts = read_safetensors(in, who, {}, [&](const auto& arrays) {
    std::vector<Array*> places;
    for (const auto& [name, shape] : arrays) state.arrays.emplace_back(name, empty_array(shape));
    for (auto& [name, array] : state.arrays) places.push_back(&array);
    return places;
  });
  return state;
}

}  // namespace TAPEGRAD::nn
