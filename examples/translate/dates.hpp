// Dates as people write them, and as ISO 8601 has them.
#pragma once

#include <algorithm>
#include <chrono>
#include <set>

#include "examples/support/show.hpp"
#include "examples/translate/corpus.hpp"

namespace translate {

constexpr std::uint64_t kDays = 73049;  // from 1900-01-01 to 2099-12-31
constexpr std::size_t kForms = 20;
constexpr std::size_t kTestDates = 1000;

using Date = std::chrono::year_month_day;

inline Date date_of(std::uint64_t day) {
  using namespace std::chrono;
  return sys_days(year(1900) / January / 1) + days(static_cast<int>(day));
}

inline std::string iso(const Date& date) {
  return examples::text("%04d-%02u-%02u", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                        static_cast<unsigned>(date.day()));
}

/// "1st", "2nd", "3rd", "4th" ... "11th" ...
inline std::string ordinal(unsigned day) {
  const unsigned last = day / 10 == 1 ? 0 : day % 10;
  return std::to_string(day) + (last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

/// The date in one of kForms forms. Numbers alone mean the month first between slashes, as Americans write, and the day
/// first between dots, as most Europeans do: nothing is left to guess.
inline std::string written(const Date& date, std::size_t form) {
  constexpr const char* months[] = {"January", "February", "March",     "April",   "May",      "June",
                                    "July",    "August",   "September", "October", "November", "December"};
  constexpr const char* weekdays[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
  const int y = static_cast<int>(date.year());
  const unsigned m = static_cast<unsigned>(date.month()), d = static_cast<unsigned>(date.day());
  const std::string month = months[m - 1], shortly = month.substr(0, 3), nth = ordinal(d);
  const std::string weekday = weekdays[std::chrono::weekday(std::chrono::sys_days(date)).c_encoding()];
  const auto line = [](const char* format, auto... values) { return examples::text(format, values...); };
  switch (form) {
    case 0:
      return line("%u %s %d", d, month.c_str(), y);  // 3 March 1987
    case 1:
      return line("%s %u, %d", month.c_str(), d, y);  // March 3, 1987
    case 2:
      return line("%s of %s %d", nth.c_str(), month.c_str(), y);  // 3rd of March 1987
    case 3:
      return line("the %s of %s, %d", nth.c_str(), month.c_str(), y);  // the 3rd of March, 1987
    case 4:
      return line("%s %s, %d", month.c_str(), nth.c_str(), y);  // March 3rd, 1987
    case 5:
      return line("%s the %s, %d", month.c_str(), nth.c_str(), y);  // March the 3rd, 1987
    case 6:
      return line("%u %s %d", d, shortly.c_str(), y);  // 3 Mar 1987
    case 7:
      return line("%s %u, %d", shortly.c_str(), d, y);  // Mar 3, 1987
    case 8:
      return line("%s. %u, %d", shortly.c_str(), d, y);  // Mar. 3, 1987
    case 9:
      return line("%02u-%s-%d", d, shortly.c_str(), y);  // 03-Mar-1987
    case 10:
      return line("%s, %s %u, %d", weekday.c_str(), month.c_str(), d, y);  // Tuesday, March 3, 1987
    case 11:
      return line("%.3s %u %s %d", weekday.c_str(), d, shortly.c_str(), y);  // Tue 3 Mar 1987
    case 12:
      return line("%s the %s of %s %d", weekday.c_str(), nth.c_str(), month.c_str(), y);
    case 13:
      return line("%d %s %u", y, month.c_str(), d);  // 1987 March 3
    case 14:
      return line("%u/%u/%d", m, d, y);  // 3/3/1987
    case 15:
      return line("%02u/%02u/%d", m, d, y);  // 03/03/1987
    case 16:
      return line("%u.%u.%d", d, m, y);  // 3.3.1987
    case 17:
      return line("%02u.%02u.%d", d, m, y);  // 03.03.1987
    case 18:
      return line("%d/%u/%u", y, m, d);  // 1987/3/3
    default:
      return line("%d%02u%02u", y, m, d);  // 19870303
  }
}

inline Pair date_pair(std::uint64_t day, std::size_t form) {
  const Date date = date_of(day);
  return {characters(written(date, form)), characters(iso(date))};
}

/// 1,000 days, drawn by the seed, are for the test; no form of them is ever trained on.
inline Corpus date_corpus(std::uint64_t seed) {
  Corpus corpus;
  corpus.source = Vocabulary(characters("0123456789abcdefghijklmnopqrstuvwxyz ,./-"));
  corpus.target = Vocabulary(characters("0123456789-"));
  corpus.fingerprint = "dates";
  Rng rng(seed ^ 0xDA7E5);
  std::set<std::uint64_t> held_out;
  while (held_out.size() < kTestDates) {
    const std::uint64_t day = rng.below(kDays);
    if (held_out.insert(day).second) corpus.test.push_back(date_pair(day, rng.below(kForms)));
  }
  corpus.draw = [held_out](std::uint64_t, std::size_t count, Rng& drawn) {
    std::vector<Pair> pairs;
    while (pairs.size() < count) {
      const std::uint64_t day = drawn.below(kDays);
      if (!held_out.contains(day)) pairs.push_back(date_pair(day, drawn.below(kForms)));
    }
    return pairs;
  };
  return corpus;
}

}  // namespace translate
