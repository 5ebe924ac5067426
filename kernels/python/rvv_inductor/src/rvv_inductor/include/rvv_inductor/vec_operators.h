// Free functions over Vectorized<T>: arithmetic, bits, maximum and minimum. Overloads that are more
// constrained than the generic ones, with the same template heads, so that they are preferred.
#pragma once

#include "vec_members.h"

namespace at::vec::inline CPU_CAPABILITY {

template <class T>
  requires rvv_inductor::Number<T>
inline Vectorized<T> operator+(const Vectorized<T>& a, const Vectorized<T>& b) {
  return rvv_inductor::vectorized<T>(rvv_inductor::lanes(a) + rvv_inductor::lanes(b));
}

template <class T>
  requires rvv_inductor::Number<T>
inline Vectorized<T> operator-(const Vectorized<T>& a, const Vectorized<T>& b) {
  return rvv_inductor::vectorized<T>(rvv_inductor::lanes(a) - rvv_inductor::lanes(b));
}

template <class T>
  requires rvv_inductor::Number<T>
inline Vectorized<T> operator*(const Vectorized<T>& a, const Vectorized<T>& b) {
  return rvv_inductor::vectorized<T>(rvv_inductor::lanes(a) * rvv_inductor::lanes(b));
}

template <class T>
  requires std::same_as<T, float> || std::same_as<T, double>
inline Vectorized<T> operator/(const Vectorized<T>& a, const Vectorized<T>& b) {
  return rvv_inductor::vectorized<T>(rvv_inductor::lanes(a) / rvv_inductor::lanes(b));
}

template <class T,
          typename std::enable_if_t<!std::is_base_of_v<Vectorizedi, Vectorized<T>>, int> = 0>
  requires(sizeof(Vectorized<T>) == rvv_inductor::kBytes)
inline Vectorized<T> operator&(const Vectorized<T>& a, const Vectorized<T>& b) {
  return rvv_inductor::vectorized<T>(rvv_inductor::lanes_as<rvv_inductor::I64>(a) &
                                     rvv_inductor::lanes_as<rvv_inductor::I64>(b));
}

template <class T,
          typename std::enable_if_t<!std::is_base_of_v<Vectorizedi, Vectorized<T>>, int> = 0>
  requires(sizeof(Vectorized<T>) == rvv_inductor::kBytes)
inline Vectorized<T> operator|(const Vectorized<T>& a, const Vectorized<T>& b) {
  return rvv_inductor::vectorized<T>(rvv_inductor::lanes_as<rvv_inductor::I64>(a) |
                                     rvv_inductor::lanes_as<rvv_inductor::I64>(b));
}

template <class T,
          typename std::enable_if_t<!std::is_base_of_v<Vectorizedi, Vectorized<T>>, int> = 0>
  requires(sizeof(Vectorized<T>) == rvv_inductor::kBytes)
inline Vectorized<T> operator^(const Vectorized<T>& a, const Vectorized<T>& b) {
  return rvv_inductor::vectorized<T>(rvv_inductor::lanes_as<rvv_inductor::I64>(a) ^
                                     rvv_inductor::lanes_as<rvv_inductor::I64>(b));
}

// Rounded once, as on every machine whose at::vec has an instruction for it.
template <typename T>
  requires std::same_as<T, float>
inline Vectorized<T> fmadd(const Vectorized<T>& a, const Vectorized<T>& b, const Vectorized<T>& c) {
  return rvv_inductor::vectorized<T>(
      rvv_inductor::fma(rvv_inductor::lanes(a), rvv_inductor::lanes(b), rvv_inductor::lanes(c)));
}

template <typename T>
  requires std::same_as<T, float>
inline Vectorized<T> fnmadd(const Vectorized<T>& a, const Vectorized<T>& b,
                            const Vectorized<T>& c) {
  return fmadd(a.neg(), b, c);
}

template <typename T>
  requires std::same_as<T, float>
inline Vectorized<T> fmsub(const Vectorized<T>& a, const Vectorized<T>& b, const Vectorized<T>& c) {
  return fmadd(a, b, c.neg());
}

template <typename T>
  requires std::same_as<T, float>
inline Vectorized<T> fnmsub(const Vectorized<T>& a, const Vectorized<T>& b,
                            const Vectorized<T>& c) {
  return fmadd(a.neg(), b, c.neg());
}

template <class T, typename std::enable_if_t<!c10::is_complex<T>::value, int> = 0>
  requires rvv_inductor::Number<T>
inline Vectorized<T> maximum(const Vectorized<T>& a, const Vectorized<T>& b) {
  return rvv_inductor::vectorized<T>(
      rvv_inductor::maximum(rvv_inductor::lanes(a), rvv_inductor::lanes(b)));
}

template <class T, typename std::enable_if_t<!c10::is_complex<T>::value, int> = 0>
  requires rvv_inductor::Number<T>
inline Vectorized<T> minimum(const Vectorized<T>& a, const Vectorized<T>& b) {
  return rvv_inductor::vectorized<T>(
      rvv_inductor::minimum(rvv_inductor::lanes(a), rvv_inductor::lanes(b)));
}

// NaN of `a` stays, that of a limit is none, as in the generic forms.
template <class T, typename std::enable_if_t<!c10::is_complex<T>::value, int> = 0>
  requires rvv_inductor::Number<T>
inline Vectorized<T> clamp_max(const Vectorized<T>& a, const Vectorized<T>& limit) {
  const auto x = rvv_inductor::lanes(a), most = rvv_inductor::lanes(limit);
  return rvv_inductor::vectorized<T>(x > most ? most : x);
}

template <class T, typename std::enable_if_t<!c10::is_complex<T>::value, int> = 0>
  requires rvv_inductor::Number<T>
inline Vectorized<T> clamp_min(const Vectorized<T>& a, const Vectorized<T>& limit) {
  const auto x = rvv_inductor::lanes(a), least = rvv_inductor::lanes(limit);
  return rvv_inductor::vectorized<T>(x < least ? least : x);
}

template <class T, typename std::enable_if_t<!c10::is_complex<T>::value, int> = 0>
  requires rvv_inductor::Number<T>
inline Vectorized<T> clamp(const Vectorized<T>& a, const Vectorized<T>& least,
                           const Vectorized<T>& most) {
  return clamp_max(clamp_min(a, least), most);
}

}  // namespace at::vec::inline CPU_CAPABILITY
