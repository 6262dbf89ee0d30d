#include "autograd/array.hpp"

#include <thread>

#include "autograd/ops.hpp"
#include "tests/catch.hpp"

using namespace tapegrad;

namespace {

/// Whether memory is pooled at all: not under AddressSanitizer, which watches every block by itself.
bool pooling() {
  release_pooled_memory();
  const std::size_t before = pooled_bytes();
  void* block = pool_allocate(std::size_t{1} << 20);
  const bool grew = pooled_bytes() > before;
  pool_deallocate(block, std::size_t{1} << 20);
  return grew;
}

// Made before main, and dropped after the main thread's pool is closed.
Tensor outlives_the_pool = Tensor{1, 2, 3} * 2;
thread_local Tensor lives_as_long_as_its_thread;

}  // namespace

TEST_CASE("blocks of every size start on a 64-byte line", "[pool]") {
  for (std::size_t bytes : {0, 1, 8, 63, 64, 65, 80, 81, 96, 97, 112, 113, 128, 129, 1000, 4097, 100000, 5000000}) {
    void* block = pool_allocate(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
    std::fill_n(static_cast<unsigned char*>(block), bytes, 0xff);  // all of it is ours
    pool_deallocate(block, bytes);
  }
  pool_deallocate(nullptr, 100);
}

TEST_CASE("a block that is given back is taken again", "[pool]") {
  if (!pooling()) return;
  for (std::size_t bytes : {1, 64, 65, 100, 1000, 65536, 3000000}) {
    void* first = pool_allocate(bytes);
    pool_deallocate(first, bytes);
    const std::size_t held = pooled_bytes();
    void* second = pool_allocate(bytes);
    CHECK(second == first);
    CHECK(pooled_bytes() == held);
    pool_deallocate(second, bytes);
  }
}

TEST_CASE("at most a line or a quarter more than asked for is taken", "[pool]") {
  if (!pooling()) return;
  for (std::size_t bytes : {64, 65, 100, 129, 1025, 70001, 1048577}) {
    release_pooled_memory();
    const std::size_t before = pooled_bytes();
    void* block = pool_allocate(bytes);
    CHECK(pooled_bytes() - before >= bytes);
    CHECK(pooled_bytes() - before <= std::max(bytes + bytes / 4 + 1, bytes + 63));
    pool_deallocate(block, bytes);
  }
}

TEST_CASE("release gives back what nobody uses, and only that", "[pool]") {
  if (!pooling()) return;
  release_pooled_memory();
  const std::size_t before = pooled_bytes();
  Array kept(Shape{1000}, Real(7));
  { const Array dropped(Shape{1 << 20}, Real(1)); }
  CHECK(pooled_bytes() >= before + (1 << 20) * sizeof(Real));
  release_pooled_memory();
  CHECK(pooled_bytes() < before + 2 * 1000 * sizeof(Real));
  CHECK(pooled_bytes() >= before + 1000 * sizeof(Real));
  CHECK(kept(999) == 7);
}

TEST_CASE("blocks may be given back on another thread", "[pool][threads]") {
  const std::size_t before = (release_pooled_memory(), pooled_bytes());
  std::vector<Tensor> made;
  std::thread([&] {
    for (int i = 0; i < 100; ++i) made.push_back(Tensor(Array(Shape{1000}, Real(i))));
  }).join();
  CHECK(made[99].value()(999) == 99);
  made.clear();
  release_pooled_memory();
  CHECK(pooled_bytes() <= before);
}

TEST_CASE("a thread that only drops what others make leaves nothing behind", "[pool][threads]") {
  const std::size_t before = (release_pooled_memory(), pooled_bytes());
  for (int i = 0; i < 20; ++i) {
    Tensor made(Array(Shape{100000}, Real(1)));
    std::thread([dropped = std::move(made)]() mutable { dropped = Tensor(); }).join();
  }
  release_pooled_memory();
  CHECK(pooled_bytes() <= before);
}

TEST_CASE("a thread that drops what another makes does not gather it", "[pool][threads]") {
  const std::size_t before = (release_pooled_memory(), pooled_bytes());
  std::size_t most = 0;
  std::thread([&] {
    Tensor passed;
    for (int i = 0; i < 50; ++i) {
      std::thread([&] { passed = Tensor(Array(Shape{1 << 16}, Real(i))); }).join();
      passed = Tensor();
      most = std::max(most, pooled_bytes());
    }
  }).join();
  CHECK(most <= before + 4 * (1 << 16) * sizeof(Real));
  CHECK(pooled_bytes() <= before);
}

TEST_CASE("a thread's memory goes back when it ends, whatever outlives its pool", "[pool][threads]") {
  const std::size_t before = (release_pooled_memory(), pooled_bytes());
  for (int i = 0; i < 10; ++i) {
    std::thread([] {
      lives_as_long_as_its_thread = Tensor(Array(Shape{1000}, Real(1)));
      const Tensor more(Array(Shape{1000}, Real(1)));
      Tape tape;
      Parameter w(Tensor{1, 2});
      tape.backward(sum(w * w));
    }).join();
  }
  CHECK(pooled_bytes() <= before);
  CHECK(outlives_the_pool.value()(2) == 6);
}

TEST_CASE("absurd sizes throw and change nothing", "[pool]") {
  const std::size_t before = pooled_bytes();
  CHECK_THROWS_AS(pool_allocate(SIZE_MAX), std::bad_alloc);
  CHECK_THROWS_AS(pool_allocate(SIZE_MAX - 100), std::bad_alloc);
  CHECK_THROWS_AS(pool_allocate(std::size_t{1} << 63), std::bad_alloc);
  CHECK_THROWS_AS(PoolAllocator<Real>().allocate(SIZE_MAX / 2), std::bad_alloc);
  const std::size_t huge = std::size_t{1} << 33;
  CHECK_THROWS_AS(element_count(Shape{huge, huge}), Error);  // the product would wrap around to 0
  CHECK_THROWS_AS(empty_array(Shape{huge, huge}), Error);
  CHECK_THROWS_AS(empty_array(Shape{huge, huge / 4}), Error);
  CHECK_THROWS_AS(Mask(Shape{huge, huge}), Error);
  CHECK_THROWS_AS(Index(Shape{huge, huge / 4}), Error);
  CHECK_THROWS_WITH(Mask(Shape{std::size_t{1} << 63}),
                    "[Array] the array would be too large; got (9223372036854775808)");
  CHECK(element_count(Shape{huge, 0}) == 0);
  CHECK(pooled_bytes() == before);
}
