// Keys of records whose type is known at run time only.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <new>

#include "flowfabric/ids.h"
#include "model/describe.h"
#include "model/field_type.h"

namespace flowfabric {

template <class Key>
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    std::size_t hash = 0;
    boost::mp11::mp_for_each<PublicMembers<Key>>([&](auto member) {
      using Field = std::remove_cvref_t<decltype(key.*member.pointer)>;
      hash = hash * 0x9E3779B97F4A7C15ULL + std::hash<Field>{}(key.*member.pointer);
    });
    return hash;
  }
};

// The description of a key.
struct KeyType {
  std::size_t size{};
  bool is_trivial{};  // may be copied byte by byte, and needs no destructor
  Columns columns{};
  std::size_t (*hash)(const void*){};
  bool (*same)(const void*, const void*){};
  std::strong_ordering (*compare)(const void*, const void*){};
  void (*make)(void* at){};
  void (*copy)(void* at, const void* from){};
  void (*move)(void* at, void* from){};
  void (*destroy)(void*){};
  // Of a key that names an execution: which; and the first key of one. Otherwise null.
  ExecutionId (*owner)(const void*){};
  void (*make_first)(void* at, const ExecutionId& owner){};
};

// Any key, held in place: no key needs memory of its own.
class AnyKey {
 public:
  static constexpr std::size_t kLargest = 96;

  // A key that is to be filled in.
  explicit AnyKey(const KeyType& type) : type_(&type) { type.make(bytes_); }
  AnyKey(const KeyType& type, const void* key) : type_(&type) { copy_from(key); }
  // `make(at)` constructs it in place.
  template <class Make>
  requires std::invocable<Make, void*> AnyKey(const KeyType& type, Make make) : type_(&type) {
    make(static_cast<void*>(bytes_));
  }
  AnyKey(const AnyKey& other) : type_(other.type_) { copy_from(other.bytes_); }
  AnyKey(AnyKey&& other) noexcept : type_(other.type_) { move_from(other); }
  AnyKey& operator=(const AnyKey& other) {
    if (this != &other) {
      this->~AnyKey();
      new (this) AnyKey(other);
    }
    return *this;
  }
  AnyKey& operator=(AnyKey&& other) noexcept {
    if (this != &other) {
      this->~AnyKey();
      new (this) AnyKey(std::move(other));
    }
    return *this;
  }
  ~AnyKey() {
    if (!type_->is_trivial) type_->destroy(bytes_);
  }

  const KeyType& type() const { return *type_; }
  const void* get() const { return bytes_; }
  void* get() { return bytes_; }
  template <class Key>
  const Key& as() const {
    return *std::launder(reinterpret_cast<const Key*>(bytes_));
  }

  // Keys of one type are compared with each other.
  bool operator==(const AnyKey& other) const { return type_->same(bytes_, other.bytes_); }
  std::strong_ordering operator<=>(const AnyKey& other) const { return type_->compare(bytes_, other.bytes_); }

 private:
  void copy_from(const void* key) {
    if (type_->is_trivial)
      std::memcpy(bytes_, key, type_->size);
    else
      type_->copy(bytes_, key);
  }
  void move_from(AnyKey& other) noexcept {
    if (type_->is_trivial)
      std::memcpy(bytes_, other.bytes_, type_->size);
    else
      type_->move(bytes_, other.bytes_);
  }

  const KeyType* type_;
  alignas(std::max_align_t) std::byte bytes_[kLargest];
};

struct AnyKeyHash {
  std::size_t operator()(const AnyKey& key) const { return key.type().hash(key.get()); }
};

}  // namespace flowfabric
