// Numbers that tell contents apart: FNV-1a. The same for float and double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tapegrad {

/// The fingerprint of what has the fingerprint `before`, and these bytes behind it.
inline std::uint64_t fingerprint(const void* data, std::size_t bytes, std::uint64_t before) {
  for (std::size_t i = 0; i < bytes; ++i)
    before = (before ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3u;
  return before;
}

inline std::uint64_t fingerprint(std::string_view text, std::uint64_t before = 0xcbf29ce484222325u) {
  return fingerprint(text.data(), text.size(), before);
}

}  // namespace tapegrad
