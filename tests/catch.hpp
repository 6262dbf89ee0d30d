#pragma once
// Catch2 for every test, version 2 or 3. Tests write version 3's names.

#if __has_include(<catch2/catch_test_macros.hpp>)

#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_tostring.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
#ifdef TAPEGRAD_TEST_MAIN
#include <catch2/catch_session.hpp>
#endif
using Catch::Approx;

#else

#ifdef TAPEGRAD_TEST_MAIN
#define CATCH_CONFIG_RUNNER
#endif
#include <catch2/catch.hpp>

namespace Catch::Matchers {
inline auto ContainsSubstring(const std::string& text) { return Contains(text); }
}  // namespace Catch::Matchers

#endif
